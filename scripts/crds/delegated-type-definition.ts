import { delegatedTypeSchema, reservedRule } from "../../src/api/delegated-type.ts";
import { WHOLE_TYPES } from "../../src/whole/types.ts";
import { definitionOf, READY } from "./definition.ts";

const RULES = "x-kubernetes-validations";

/** Returns the CustomResourceDefinition of DelegatedType. */
export function delegatedTypeDefinition(): object {
  const written = delegatedTypeSchema.meta();
  const rules = Array.isArray(written?.[RULES]) ? written[RULES] : [];
  const builtIn = WHOLE_TYPES.map(({ resource: { group, plural }, makers, whyReserved: message }) =>
    reservedRule({ group, plurals: [...makers.map(({ resource }) => resource.plural), plural], message }),
  );
  return definitionOf({
    kind: "DelegatedType",
    plural: "delegatedtypes",
    hasStatus: true,
    columns: [
      { name: "Ready", type: "string", jsonPath: `${READY}.status` },
      { name: "Objects", type: "integer", jsonPath: ".status.objects", description: "Objects that members get." },
      {
        name: "Waiting",
        type: "integer",
        jsonPath: ".status.waiting",
        description: "Objects that some member lacks, or has in another version.",
      },
      {
        name: "Unhealthy",
        type: "integer",
        jsonPath: ".status.unhealthy",
        description: "Objects that are unhealthy in some member.",
      },
      { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      { name: "Message", type: "string", jsonPath: `${READY}.message`, priority: 1 },
    ],
    schema: delegatedTypeSchema.meta({ ...written, [RULES]: [...rules, ...builtIn] }),
  });
}
