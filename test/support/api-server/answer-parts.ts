import type { AnyObject } from "../../../src/api/delegated-type.ts";

/** The parts of objects that a client asks for. */
export interface AnswerParts {
  readonly dropManagedFields?: boolean | undefined;
  readonly metadataOnly?: boolean | undefined;
}

/** Returns the part of an object that the client asked for. */
export function partsOf(object: AnyObject, { dropManagedFields, metadataOnly }: AnswerParts = {}): AnyObject {
  const { managedFields: _, ...metadata } = object.metadata ?? {};
  const { apiVersion, kind } = PARTIAL;
  const kept = metadataOnly === true ? { apiVersion, kind, metadata: object.metadata ?? {} } : object;
  return dropManagedFields === true ? { ...kept, metadata } : kept;
}

const PARTIAL = { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata" } as const;
