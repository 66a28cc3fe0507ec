import { isDeepStrictEqual } from "node:util";
import { z } from "zod";

/** A structural schema, as a CustomResourceDefinition holds it. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

const schemaNode: z.ZodType<Schema> = z.record(z.string(), z.unknown());
const schemaMap = z.record(z.string(), schemaNode);
const names = z.array(z.string());

// Fields that do not decide which values are valid.
const TEXTS = new Set(["description", "title", "example"]);
const UPPER = ["maxLength", "maximum", "maxItems", "maxProperties"];
const LOWER = ["minLength", "minimum", "minItems", "minProperties"];
// Their presence allows more.
const WIDENING = ["nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"];
const COMPARED = new Set([
  ...TEXTS,
  ...UPPER,
  ...LOWER,
  ...WIDENING,
  "type",
  "properties",
  "additionalProperties",
  "items",
  "required",
  "enum",
  "x-kubernetes-validations",
]);

/**
 * Returns changes by which valid objects of `older` break under `newer`, one line each with the field's path. Changes
 * that it cannot judge, such as of a pattern, count.
 */
export function schemaChanges(older: Schema, newer: Schema, path = ""): string[] {
  const at = path === "" ? "the object" : path;
  return [
    ...typeChanges(older, newer, at),
    ...boundChanges(older, newer, at),
    ...otherChanges(older, newer, at),
    ...requiredChanges(older, newer, at),
    ...fieldChanges(older, newer, path),
    ...mapChanges(older, newer, path),
    ...itemChanges(older, newer, path),
  ];
}

function typeChanges(older: Schema, newer: Schema, at: string): string[] {
  const wider = older.type === "integer" && newer.type === "number";
  const changed = older.type !== newer.type && newer.type !== undefined && !wider;
  const lost = WIDENING.filter((keyword) => older[keyword] === true && newer[keyword] !== true);
  return [
    ...(changed ? [`${at}: was of type ${older.type}, is of type ${newer.type}`] : []),
    ...lost.map((keyword) => `${at}: is no longer ${keyword}`),
  ];
}

function boundChanges(older: Schema, newer: Schema, at: string): string[] {
  const bound = z.number();
  const narrower = (keyword: string, isNarrower: (before: number, now: number) => boolean): string[] => {
    if (newer[keyword] === undefined) return [];
    const now = bound.parse(newer[keyword]);
    const before = older[keyword] === undefined ? undefined : bound.parse(older[keyword]);
    if (before !== undefined && !isNarrower(before, now)) return [];
    return [`${at}: ${keyword} was ${before ?? "absent"}, is ${now}`];
  };
  return [
    ...UPPER.flatMap((keyword) => narrower(keyword, (before, now) => now < before)),
    ...LOWER.flatMap((keyword) => narrower(keyword, (before, now) => now > before)),
    ...listChanges(older, newer, at),
  ];
}

function listChanges(older: Schema, newer: Schema, at: string): string[] {
  const values = z.array(z.unknown());
  const rules = z.array(z.looseObject({ rule: z.string() })).default([]);
  const allowed = newer.enum === undefined ? undefined : values.parse(newer.enum);
  const before = older.enum === undefined ? undefined : values.parse(older.enum);
  const refused = (before ?? []).filter((value) => allowed?.includes(value) === false);
  const known = new Set(rules.parse(older["x-kubernetes-validations"]).map(({ rule }) => rule));
  const added = rules.parse(newer["x-kubernetes-validations"]).filter(({ rule }) => !known.has(rule));
  return [
    ...(allowed !== undefined && before === undefined ? [`${at}: may only be one of ${allowed.join(", ")} now`] : []),
    ...refused.map((value) => `${at}: may no longer be ${JSON.stringify(value)}`),
    ...added.map(({ rule }) => `${at}: has a new rule, ${rule}`),
  ];
}

/** Handles an unknown keyword: only its presence and absence are known to be harmless. */
function otherChanges(older: Schema, newer: Schema, at: string): string[] {
  const changed = Object.keys(newer).filter(
    (keyword) => !COMPARED.has(keyword) && keyword !== "default" && !isDeepStrictEqual(older[keyword], newer[keyword]),
  );
  const others = changed.map(
    (keyword) => `${at}: ${keyword} was ${JSON.stringify(older[keyword])}, is ${JSON.stringify(newer[keyword])}`,
  );
  // An absent value meant the old default.
  const defaulted = older.default !== undefined && !isDeepStrictEqual(older.default, newer.default);
  return defaulted ? [...others, `${at}: the default was ${JSON.stringify(older.default)}`] : others;
}

function requiredChanges(older: Schema, newer: Schema, at: string): string[] {
  const before = names.default([]).parse(older.required);
  const fields = schemaMap.default({}).parse(newer.properties);
  return names
    .default([])
    .parse(newer.required)
    .filter((name) => !before.includes(name) && fields[name]?.default === undefined)
    .map((name) => `${at}: ${name} is required now`);
}

function fieldChanges(older: Schema, newer: Schema, path: string): string[] {
  const fields = schemaMap.default({}).parse(newer.properties);
  return Object.entries(schemaMap.default({}).parse(older.properties)).flatMap(([name, before]) => {
    const field = `${path}.${name}`;
    const now = fields[name];
    if (now !== undefined) return schemaChanges(before, now, field);
    return newer["x-kubernetes-preserve-unknown-fields"] === true ? [] : [`${field}: is gone, so its value is dropped`];
  });
}

function mapChanges(older: Schema, newer: Schema, path: string): string[] {
  const [before, now] = [older.additionalProperties, newer.additionalProperties];
  if (before === undefined || before === false || now === true) return [];
  if (now === undefined || now === false) return [`${path}: is no map any more, so its values are dropped`];
  return before === true
    ? [`${path}: was a map of anything`]
    : schemaChanges(schemaNode.parse(before), schemaNode.parse(now), `${path}[*]`);
}

function itemChanges(older: Schema, newer: Schema, path: string): string[] {
  if (older.items === undefined || newer.items === undefined) return [];
  return schemaChanges(schemaNode.parse(older.items), schemaNode.parse(newer.items), `${path}[]`);
}

const definition = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    group: z.string(),
    scope: z.string(),
    names: z.looseObject({ kind: z.string(), plural: z.string() }),
    versions: z.array(
      z.looseObject({
        name: z.string(),
        served: z.boolean(),
        subresources: z.record(z.string(), z.unknown()).optional(),
        schema: z.looseObject({ openAPIV3Schema: schemaNode }),
      }),
    ),
  }),
});

/** Returns the changes of a whole CustomResourceDefinition. */
export function definitionChanges(older: unknown, newer: unknown): string[] {
  const [before, now] = [definition.parse(older), definition.parse(newer)];
  const { name } = before.metadata;
  const identity = ({ spec }: z.output<typeof definition>): unknown => [spec.group, spec.scope, spec.names];
  return [
    ...(isDeepStrictEqual(identity(before), identity(now)) ? [] : [`${name}: has another group, scope or names`]),
    ...before.spec.versions.flatMap((version) => {
      const same = now.spec.versions.find((each) => each.name === version.name);
      if (same === undefined || (version.served && !same.served)) return [`${name}: ${version.name} is not served`];
      const lost = Object.keys(version.subresources ?? {}).filter((each) => same.subresources?.[each] === undefined);
      return [
        ...lost.map((each) => `${name}: ${version.name} has no subresource ${each} any more`),
        ...schemaChanges(version.schema.openAPIV3Schema, same.schema.openAPIV3Schema).map((line) => `${name}${line}`),
      ];
    }),
  ];
}
