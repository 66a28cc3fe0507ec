import { isDeepStrictEqual } from "node:util";
import fastJsonPatch from "fast-json-patch";
import { CLAIM_STATUS_ANNOTATION, CLUSTER_ANNOTATION, MEMBER_UID_ANNOTATION } from "../src/api/keys.ts";
import type { Pod } from "../src/api/kubernetes.ts";
import { withKeysOf, withMarksOf } from "../src/pods/marks.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { fieldsOfMarks, readPodSpec } from "./pod-fields.ts";
import { allowed, patched, type Verdict } from "./responses.ts";

/** Annotations of kinds other than pods that an update may not leave out. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  PersistentVolumeClaim: [CLUSTER_ANNOTATION, CLAIM_STATUS_ANNOTATION],
  Cluster: [MEMBER_UID_ANNOTATION],
};

/** Restores marks that an update left out. Admission policies refuse other values. */
export function restoreMarks({ object, oldObject, kind, operation }: AdmissionRequest): Verdict {
  if (object === undefined || oldObject === undefined || operation !== "UPDATE") return allowed();
  const patch = patchOf(kind.kind, oldObject, object);
  const restored = fastJsonPatch.applyPatch(structuredClone(object), [...patch]).newDocument;
  // Manifests may leave marks out; an update that does only that meant to remove them.
  const isAll = patch.length > 0 && isDeepStrictEqual(written(restored), written(oldObject));
  return patched(patch, isAll ? [kind.kind === "Pod" ? PUT_BACK + END_OF_PODS : PUT_BACK] : []);
}

const PUT_BACK =
  "the update changes nothing: Legation restores its own keys on an object when an update leaves them out";
const END_OF_PODS = "; to end a delegated pod, delete it and wait for its delegate to end";

function patchOf(kind: string, old: ReviewedObject, object: ReviewedObject): fastJsonPatch.Operation[] {
  if (kind === "Pod") {
    const pod = withFieldsOfMarks(object);
    return fastJsonPatch.compare(pod, withMarksOf(withFieldsOfMarks(old), pod));
  }
  const { annotations } = object.metadata;
  const kept = withKeysOf(old.metadata.annotations, annotations, KEPT[kind] ?? []);
  return fastJsonPatch.compare(annotated(annotations), annotated(kept));
}

function withFieldsOfMarks(object: ReviewedObject): Pod {
  const spec = readPodSpec(object.spec);
  // The API server refuses such a spec.
  return fieldsOfMarks(object, typeof spec === "string" ? {} : spec);
}

function annotated(annotations: Readonly<Record<string, string>> | undefined): object {
  return { metadata: annotations === undefined ? {} : { annotations } };
}

/** Returns the object without fields that the API server updates. */
function written({ metadata: { managedFields: _, ...metadata }, ...fields }: ReviewedObject): object {
  return { ...fields, metadata };
}
