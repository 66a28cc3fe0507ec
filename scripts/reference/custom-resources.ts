import { z } from "zod";
import { clusterDefinition } from "../crds/cluster-definition.ts";
import { delegatedTypeDefinition } from "../crds/delegated-type-definition.ts";
import { placementDefaultsDefinition } from "../crds/placement-defaults-definition.ts";
import { code, heading, plain, table } from "./markdown.ts";

const rules = z.array(z.object({ message: z.string() }));
const schemaNode = z.object({
  type: z.string().exactOptional(),
  description: z.string().exactOptional(),
  default: z.unknown().optional(),
  enum: z.array(z.unknown()).exactOptional(),
  minimum: z.number().exactOptional(),
  maximum: z.number().exactOptional(),
  maxLength: z.number().exactOptional(),
  minItems: z.number().exactOptional(),
  maxItems: z.number().exactOptional(),
  maxProperties: z.number().exactOptional(),
  pattern: z.string().exactOptional(),
  required: z.array(z.string()).exactOptional(),
  properties: z.record(z.string(), z.unknown()).exactOptional(),
  items: z.unknown().optional(),
  additionalProperties: z.unknown().optional(),
  "x-kubernetes-validations": rules.exactOptional(),
});
type SchemaNode = z.infer<typeof schemaNode>;

const definition = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    names: z.object({ kind: z.string(), plural: z.string() }),
    group: z.string(),
    versions: z.tuple([z.object({ name: z.string(), schema: z.object({ openAPIV3Schema: schemaNode }) })]),
  }),
});

/** Pages by file name, one for each custom resource. */
export const CUSTOM_RESOURCE_PAGES: Readonly<Record<string, () => string>> = {
  "cluster.md": () =>
    page(clusterDefinition(), "`src/api/cluster.ts`", [
      ["joining a member", "operations.md#join"],
      ["which pods may run there", "placement.md#placement-by-operators"],
      ["names and labels of a Cluster", "annotations.md#on-a-cluster"],
    ]),
  "delegated-type.md": () =>
    page(delegatedTypeDefinition(), "`src/api/delegated-type.ts`", [
      ["allowing a type", "whole-objects.md#allow-a-type"],
      ["expressions", "whole-objects.md#expressions"],
    ]),
  "placement-defaults.md": () =>
    page(placementDefaultsDefinition(), "`src/api/placement-defaults.ts`", [
      ["defaults of placement", "placement.md#placementdefaults"],
    ]),
};

function page(resource: object, source: string, more: readonly (readonly [text: string, link: string])[]): string {
  const { metadata, spec } = definition.parse(resource);
  const [{ name: version, schema }] = spec.versions;
  const root = schema.openAPIV3Schema;
  const parts = ["spec", "status"].flatMap((part) => {
    const node = root.properties?.[part];
    if (node === undefined) return [];
    const rows = fieldsOf(schemaNode.parse(node), part);
    return [`\n## ${part}\n\n${table(["field", "type", "default", "allowed", "meaning"], rows)}`];
  });
  const messages = rulesOf(root).map((message) => `- ${plain(message)}\n`);
  return [
    heading(spec.names.kind, `${plain(root.description ?? "")} See also ${linksText(more)}.`, source),
    `\n\`apiVersion: ${spec.group}/${version}\`, \`kind: ${spec.names.kind}\`, cluster-scoped. \`kubectl explain ${metadata.name}.spec\`\nshows the same in a terminal.\n`,
    ...parts,
    messages.length === 0
      ? ""
      : `\n## Rules\n\nThe API server refuses an object that breaks one:\n\n${messages.join("")}`,
  ].join("");
}

function linksText(more: readonly (readonly [string, string])[]): string {
  const links = more.map(([text, link]) => `[${text}](../${link})`);
  return links.length < 2 ? links.join("") : `${links.slice(0, -1).join(", ")} and ${links.at(-1)}`;
}

function fieldsOf(node: SchemaNode, path: string): string[][] {
  return Object.entries(node.properties ?? {}).flatMap(([name, value]) => {
    const field = schemaNode.parse(value);
    const at = `${path}.${name}`;
    const { type, inner, suffix } = typeOf(field);
    const required = node.required?.includes(name) === true && field.default === undefined;
    const row = [
      code(at.slice(at.indexOf(".") + 1)),
      type,
      field.default === undefined ? (required ? "required" : "") : code(JSON.stringify(field.default)),
      allowed(field, inner),
      plain(field.description ?? inner?.description ?? ""),
    ];
    return [row, ...fieldsOf(inner ?? field, at + suffix)];
  });
}

/** Returns a field's type, the schema of its items or values, and how paths lead into them. */
function typeOf(field: SchemaNode): { type: string; inner?: SchemaNode; suffix: string } {
  const type = field.type ?? "any";
  if (field.items !== undefined) {
    const inner = schemaNode.parse(field.items);
    return { type: `list of ${typeOf(inner).type}`, inner, suffix: "[]" };
  }
  const values = schemaNode.safeParse(field.additionalProperties);
  if (values.success) return { type: `map of ${typeOf(values.data).type}`, inner: values.data, suffix: "{}" };
  return { type, suffix: "" };
}

function allowed(field: SchemaNode, inner: SchemaNode | undefined): string {
  const { minimum, maximum, minItems, maxItems, maxProperties } = field;
  const values = field.enum ?? inner?.enum;
  const pattern = field.pattern ?? inner?.pattern;
  const longest = field.maxLength ?? inner?.maxLength;
  const bounds = [
    minimum === undefined ? "" : maximum === undefined ? `from ${minimum}` : `${minimum} to ${maximum}`,
    minimum === undefined && maximum !== undefined ? `at most ${maximum}` : "",
    minItems === undefined ? "" : `at least ${minItems}`,
    maxItems === undefined ? "" : `at most ${maxItems}`,
    maxProperties === undefined ? "" : `at most ${maxProperties}`,
    longest === undefined ? "" : `at most ${longest} characters`,
    values === undefined ? "" : values.map((value) => code(String(value))).join(", "),
    pattern === undefined ? "" : `matches ${code(pattern)}`,
  ];
  return bounds.filter((text) => text !== "").join("; ");
}

function rulesOf(node: SchemaNode): string[] {
  const children = [...Object.values(node.properties ?? {}), node.items, node.additionalProperties];
  const below = children.flatMap((child) => {
    const parsed = schemaNode.safeParse(child);
    return parsed.success ? rulesOf(parsed.data) : [];
  });
  const own = node["x-kubernetes-validations"]?.map(({ message }) => message) ?? [];
  return [...new Set([...own, ...below])];
}
