import { z } from "zod";
import type { PersistentVolumeClaim } from "../../api/kubernetes.ts";
import { amounts } from "../../api/quantity.ts";
import { readFields, type WrittenObject } from "./documents.ts";

/** What of a claim decides whether a member can have one like it. */
export type ClaimSpec = Pick<NonNullable<PersistentVolumeClaim["spec"]>, "volumeName" | "dataSource" | "dataSourceRef">;

const source = z.looseObject({ kind: z.string(), name: z.string() });

/** A claim's spec; the API server keeps a data source under both of its names. */
export const claimSpec: z.ZodType<ClaimSpec> = z
  .looseObject({
    volumeName: z.string().exactOptional(),
    dataSource: source.exactOptional(),
    dataSourceRef: source.exactOptional(),
    resources: z.looseObject({ requests: amounts.exactOptional() }).exactOptional(),
  })
  .transform(({ volumeName, dataSource, dataSourceRef = dataSource }) => ({
    ...(volumeName === undefined ? {} : { volumeName }),
    ...(dataSource === undefined ? {} : { dataSource }),
    ...(dataSourceRef === undefined ? {} : { dataSourceRef }),
  }));

const claimFields = z.looseObject({ spec: claimSpec.optional() });

/** The spec of a claim of a manifest; throws a `Failure` that names what is wrong. */
export function writtenClaim(object: WrittenObject): ClaimSpec {
  return readFields(claimFields, object).spec ?? {};
}
