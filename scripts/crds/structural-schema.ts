import { z } from "zod";

/** A node of an OpenAPI v3 schema in a CustomResourceDefinition. */
export type StructuralSchema = { readonly [field: string]: unknown };

// Bounds that zod writes for unbounded integers; every JavaScript number meets them.
const SAFE_BOUNDS = new Set([Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
const INT32_BOUNDS = new Set([-(2 ** 31), 2 ** 31 - 1]);

// Refused by the API server, or meaningless there: unknown fields are pruned.
const DROPPED = new Set(["$schema", "additionalProperties:false", "propertyNames"]);

/** Converts a zod schema to a structural schema with defaults. */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  return clean(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input" }));
}

function clean(node: StructuralSchema): StructuralSchema {
  const cleaned: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(node)) {
    if (DROPPED.has(field) || DROPPED.has(`${field}:${value}`)) continue;
    if ((field === "minimum" || field === "maximum") && isImplied(value)) continue;
    cleaned[field] =
      field === "properties" ? mapValues(value) : isSchema(value) && field !== "default" ? clean(value) : value;
  }
  if (node.type === "integer" && cleaned.format === undefined) cleaned.format = "int32";
  return cleaned;
}

function isImplied(bound: unknown): boolean {
  return typeof bound === "number" && (SAFE_BOUNDS.has(bound) || INT32_BOUNDS.has(bound));
}

function mapValues(properties: unknown): StructuralSchema {
  if (!isSchema(properties)) return {};
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, isSchema(property) ? clean(property) : property]),
  );
}

function isSchema(value: unknown): value is StructuralSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
