import { describe, expect, test } from "vitest";
import { z } from "zod";
import { structuralSchema } from "../../../scripts/crds/structural-schema.ts";

describe("a zod schema as a structural schema", () => {
  test.each<[string, z.ZodType, object]>([
    [
      "an optional field is not required",
      z.object({ a: z.string().optional() }),
      {
        type: "object",
        properties: { a: { type: "string" } },
      },
    ],
    [
      "a field with a default is not required",
      z.object({ a: z.boolean().default(true) }),
      {
        type: "object",
        properties: { a: { type: "boolean", default: true } },
      },
    ],
    [
      "unknown fields are pruned, not forbidden",
      z.strictObject({ a: z.string() }),
      {
        type: "object",
        properties: { a: { type: "string" } },
        required: ["a"],
      },
    ],
    [
      "a map says nothing of its keys",
      z.record(z.string(), z.string()),
      {
        type: "object",
        additionalProperties: { type: "string" },
      },
    ],
    [
      "an integer has the bounds that were written, and its format",
      z.int32().min(1),
      {
        type: "integer",
        format: "int32",
        minimum: 1,
      },
    ],
    [
      "a wider integer keeps its format",
      z.number().int().meta({ format: "int64" }),
      {
        type: "integer",
        format: "int64",
      },
    ],
    [
      "extensions and descriptions are kept, at every depth",
      z.object({
        list: z
          .array(z.object({ type: z.string() }))
          .meta({ "x-kubernetes-list-type": "map" })
          .describe("things"),
      }),
      {
        type: "object",
        properties: {
          list: {
            type: "array",
            description: "things",
            "x-kubernetes-list-type": "map",
            items: { type: "object", properties: { type: { type: "string" } }, required: ["type"] },
          },
        },
        required: ["list"],
      },
    ],
    [
      "a default that is an object is no schema",
      z.object({ a: z.object({ b: z.int32().default(1) }).prefault({}) }),
      {
        type: "object",
        properties: {
          a: { type: "object", default: {}, properties: { b: { type: "integer", format: "int32", default: 1 } } },
        },
      },
    ],
  ])("%s", (_, schema, expected) => {
    expect(structuralSchema(schema)).toEqual(expected);
  });
});
