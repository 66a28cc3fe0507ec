import { z } from "zod";
import { defined } from "../../api/defined.ts";
import { isJsonObject, valueAt } from "../../api/json.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { selectorText } from "./clusters.ts";
import { affinity, policiesOf, resourceSelector } from "./karmada-policies.ts";
import { templatePath } from "./kinds.ts";
import { OBJECT_PER_GROUP, type ObjectOperation, type ObjectOverride } from "./overrides.ts";
import { type ConversionReport, type Gap, nameOf } from "./report.ts";

const operator = z.enum(["add", "replace", "remove"]);
const wordsOverriders = z
  .array(z.object({ containerName: z.string(), operator, value: z.array(z.string()).default([]) }))
  .default([]);
const overriders = z.object({
  plaintext: z.array(z.object({ path: z.string(), operator, value: z.unknown().optional() })).default([]),
  imageOverrider: z
    .array(
      z.object({
        predicate: z.object({ path: z.string() }).optional(),
        component: z.enum(["Registry", "Repository", "Tag"]),
        operator,
        value: z.string().default(""),
      }),
    )
    .default([]),
  commandOverrider: wordsOverriders,
  argsOverrider: wordsOverriders,
  labelsOverrider: z.array(z.unknown()).default([]),
  annotationsOverrider: z.array(z.unknown()).default([]),
  fieldOverrider: z.array(z.object({ fieldPath: z.string() })).default([]),
});
const overrideSchema = z.object({
  spec: z.object({
    resourceSelectors: z.array(resourceSelector).optional(),
    overrideRules: z.array(z.object({ targetCluster: affinity.optional(), overriders })).default([]),
    // Deprecated since Karmada 1.0.
    targetCluster: affinity.optional(),
    overriders: overriders.optional(),
  }),
});
type Overriders = z.output<typeof overriders>;

/** Returns the differences between clusters that an input's policies make in an object. Adds those that apply to `used`. */
export type KarmadaOverrides = (object: WrittenObject, used: Set<WrittenObject>) => ObjectOverride[];

export function karmadaOverrides(objects: readonly WrittenObject[], report: ConversionReport): KarmadaOverrides {
  // Karmada applies cluster-wide policies first.
  const policies = policiesOf("OverridePolicy", overrideSchema, objects).sort(
    (a, b) => Number(b.isClusterWide) - Number(a.isClusterWide),
  );
  return (object, used) =>
    policies
      .filter((policy) => policy.precision(object) > 0)
      .flatMap(({ object: policy, source, spec: { overrideRules, targetCluster, overriders } }) => {
        used.add(policy);
        const gap = report.about(source);
        const rules = overrideRules.map((rule, index) => ({ ...rule, field: `spec.overrideRules[${index}].` }));
        if (overriders !== undefined) rules.push({ targetCluster, overriders, field: "spec." });
        return rules.flatMap(({ targetCluster: target, overriders: given, field }) => {
          const { names: clusters, excluded = [], labels = [] } = target ?? {};
          if (excluded.length > 0) {
            gap(
              `${field}targetCluster.exclude`,
              "an override names its clusters, and not the others",
              "label the Clusters that it is for, and write clusterSelector",
            );
            return [];
          }
          const clusterSelector = labels.length === 0 ? undefined : selectorText(labels);
          const operations = operationsOf(object, given, `${field}overriders`, gap);
          return [{ source, ...defined({ clusters, clusterSelector }), operations }];
        });
      });
}

/** Returns the operations in the order in which Karmada applies the overriders. */
function operationsOf(object: WrittenObject, given: Overriders, field: string, gap: Gap): ObjectOperation[] {
  // Karmada applies each rule to the result of the one before.
  const containers = containersOf(object);
  const change = ({ path, container }: Container, key: string, value: unknown, at: string): ObjectOperation => {
    const op = container[key] === undefined ? "add" : "replace";
    container[key] = value;
    return { op, path: `${path}/${key}`, value, field: at };
  };
  const images = given.imageOverrider.flatMap((rule, index) => {
    const at = `${field}.imageOverrider[${index}]`;
    const changed = containers
      .filter(({ path }) => rule.predicate === undefined || rule.predicate.path === `${path}/image`)
      .flatMap((each) => {
        const { image } = each.container;
        return typeof image === "string" ? [change(each, "image", imageWith(image, rule), at)] : [];
      });
    if (changed.length === 0) gap(at, `${nameOf(object)} has no such image`, "write legation.dev/overrides by hand");
    return changed;
  });
  const words = (["command", "args"] as const).flatMap((key) =>
    given[`${key}Overrider`].flatMap(({ containerName, operator, value }, index) => {
      const at = `${field}.${key}Overrider[${index}]`;
      const found = containers.find(({ container: { name } }) => name === containerName);
      if (found === undefined) {
        gap(at, `${nameOf(object)} has no container ${containerName}`, "nothing: it changed nothing before");
        return [];
      }
      const before = found.container[key];
      const list: unknown[] = Array.isArray(before) ? before : [];
      const after = {
        add: [...list, ...value],
        replace: value,
        remove: list.filter((word) => !value.some((removed) => removed === word)),
      };
      return [change(found, key, after[operator], at)];
    }),
  );
  for (const key of ["labelsOverrider", "annotationsOverrider"] as const) {
    if (given[key].length > 0) {
      gap(`${field}.${key}`, "labels and annotations are the same in all members", OBJECT_PER_GROUP);
    }
  }
  for (const [index, { fieldPath }] of given.fieldOverrider.entries()) {
    gap(`${field}.fieldOverrider[${index}]`, `no part of ${fieldPath} can differ between members`, OBJECT_PER_GROUP);
  }
  const plain = given.plaintext.map(({ path, operator: op, value }, index) => {
    return { op, path, value, field: `${field}.plaintext[${index}]` };
  });
  return [...images, ...words, ...plain];
}

interface Container {
  readonly path: string;
  readonly container: Record<string, unknown>;
}

function containersOf(object: WrittenObject): Container[] {
  const path = [...templatePath(object), "spec", "containers"];
  const containers = valueAt(object, path);
  if (!Array.isArray(containers)) return [];
  return containers.flatMap((container: unknown, index) =>
    isJsonObject(container) ? [{ path: `/${[...path, index].join("/")}`, container: { ...container } }] : [],
  );
}

/** Changes one component of `[registry/]repository[:tag|@digest]`. */
function imageWith(image: string, { component, operator, value }: Overriders["imageOverrider"][number]): string {
  const [, Registry = "", Repository = "", Tag = ""] =
    /^(?:(localhost|[^/]*[.:][^/]*)\/)?([^:@]*)(?:[:@](.*))?$/.exec(image) ?? [];
  const parts = { Registry, Repository, Tag };
  const after = { add: parts[component] + value, replace: value, remove: "" };
  const changed = { ...parts, [component]: after[operator] };
  const tag = changed.Tag.replace(/^@/, "");
  const mark = tag === "" ? "" : tag.startsWith("sha256:") ? "@" : ":";
  return [changed.Registry, changed.Repository].filter((part) => part !== "").join("/") + mark + tag;
}
