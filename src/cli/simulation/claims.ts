import { z } from "zod";
import { amounts } from "../../api/quantity.ts";
import type { ClaimSpec } from "../../simulation/claims.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";

const source = z.looseObject({ kind: z.string(), name: z.string() });

/** A claim's spec. The API server keeps a data source under both of its names. */
export const claimSpec: z.ZodType<ClaimSpec> = z
  .looseObject({
    volumeName: z.string().exactOptional(),
    dataSource: source.exactOptional(),
    dataSourceRef: source.exactOptional(),
    resources: z.looseObject({ requests: amounts.exactOptional() }).exactOptional(),
  })
  .transform(({ resources: _, ...spec }) =>
    spec.dataSource === undefined ? spec : { dataSourceRef: spec.dataSource, ...spec },
  );

const claimFields = z.looseObject({ spec: claimSpec.optional() });

/** Reads the spec of a claim of a manifest. Throws a `Failure` that names a wrong field. */
export function writtenClaim(object: WrittenObject): ClaimSpec {
  return readFields(claimFields, object).spec ?? {};
}
