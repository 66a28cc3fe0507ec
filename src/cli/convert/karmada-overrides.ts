import { z } from "zod";
import { isJsonObject, valueAt } from "../../api/json.ts";
import type { WrittenObject } from "../shared/documents.ts";
import {
  affinity,
  choiceOf,
  isInScope,
  type KarmadaAffinity,
  nameOrder,
  type Policy,
  policiesOf,
  precisionOf,
  resourceSelector,
} from "./karmada-policies.ts";
import { templatePath } from "./kinds.ts";
import type { ObjectOperation, ObjectOverride } from "./patches.ts";
import { selectorText } from "./placement.ts";
import { type ConversionReport, type Gap, nameOf, noDifference } from "./report.ts";

interface WrittenContainer {
  readonly name: string;
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
}

const operator = z.enum(["add", "replace", "remove"]);
const wordsOverriders = z
  .array(z.looseObject({ containerName: z.string(), operator, value: z.array(z.string()).default([]) }))
  .default([]);
const overriders = z.looseObject({
  plaintext: z.array(z.looseObject({ path: z.string(), operator, value: z.unknown().optional() })).default([]),
  imageOverrider: z
    .array(
      z.looseObject({
        predicate: z.looseObject({ path: z.string() }).optional(),
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
  fieldOverrider: z.array(z.looseObject({ fieldPath: z.string() })).default([]),
});
const overrideSchema = z.looseObject({
  spec: z.looseObject({
    resourceSelectors: z.array(resourceSelector).optional(),
    overrideRules: z.array(z.looseObject({ targetCluster: affinity.optional(), overriders })).default([]),
    // Deprecated since Karmada 1.0.
    targetCluster: affinity.optional(),
    overriders: overriders.optional(),
  }),
});
type Overriders = z.output<typeof overriders>;
type OverrideSpec = z.output<typeof overrideSchema>["spec"];

/** The override policies of an input, in the order in which Karmada applies them: cluster-wide ones first, then by name. */
export class KarmadaOverrides {
  readonly #policies: readonly Policy<OverrideSpec>[];

  constructor(objects: readonly WrittenObject[]) {
    this.#policies = policiesOf("OverridePolicy", overrideSchema, objects).sort(
      (a, b) => Number(b.isClusterWide) - Number(a.isClusterWide) || nameOrder(a.object, b.object),
    );
  }

  /** Returns the differences between clusters that they make in an object. Adds those that apply to `used`. */
  of(object: WrittenObject, used: Set<WrittenObject>, report: ConversionReport): ObjectOverride[] {
    const applied = this.#policies.filter((policy) => applies(policy, object));
    return applied.flatMap(({ object: policy, spec }) => {
      used.add(policy);
      const { overrideRules, targetCluster, overriders } = spec;
      const old = overriders === undefined ? [] : [{ targetCluster, overriders, field: "spec.overriders" }];
      const rules = overrideRules.map((rule, index) => ({ ...rule, field: `spec.overrideRules[${index}].overriders` }));
      return [...rules, ...old].flatMap(({ targetCluster: target, overriders: given, field }) => {
        const source = nameOf(policy);
        const where = whereOf(target, report.about(source, field.replace(/\.overriders$/, ".targetCluster")));
        const operations = where === undefined ? [] : operationsOf(object, given, field, report.about(source));
        return where === undefined || operations.length === 0 ? [] : [{ source, ...where, operations }];
      });
    });
  }
}

function applies({ spec: { resourceSelectors }, ...policy }: Policy<OverrideSpec>, object: WrittenObject): boolean {
  if (!isInScope(policy, object)) return false;
  return resourceSelectors?.some((selector) => precisionOf(selector, object, policy) > 0) ?? true;
}

function whereOf(
  target: KarmadaAffinity | undefined,
  gap: Gap,
): Pick<ObjectOverride, "clusters" | "clusterSelector"> | undefined {
  const { names, excluded, labels } = choiceOf(target ?? {});
  if (names === undefined && excluded !== undefined) {
    gap(
      ".exclude",
      "an override names its clusters, and not the others",
      "label the Clusters that it is for, and write clusterSelector",
    );
    return undefined;
  }
  const clusters = names?.filter((name) => excluded?.includes(name) !== true);
  const clusterSelector = labels === undefined ? "" : selectorText(labels);
  return { ...(clusters === undefined ? {} : { clusters }), ...(clusterSelector === "" ? {} : { clusterSelector }) };
}

/** Returns the operations in the order in which Karmada applies the overriders. */
function operationsOf(object: WrittenObject, given: Overriders, field: string, gap: Gap): ObjectOperation[] {
  const containers = containersOf(object);
  // Karmada applies each rule to the result of the one before.
  const now = new Map<string, unknown>();
  const change = (path: string, value: unknown, isThere: boolean, at: string): ObjectOperation => {
    now.set(path, value);
    return { op: isThere ? "replace" : "add", path, value, field: at };
  };
  const images = given.imageOverrider.flatMap((rule, index): ObjectOperation[] => {
    const at = `${field}.imageOverrider[${index}]`;
    const chosen = containers.filter(
      ({ path }) => rule.predicate === undefined || rule.predicate.path === `${path}/image`,
    );
    if (chosen.length === 0)
      gap(at, `${nameOf(object)} has no such image`, "write legation.dev/overrides with the image's path");
    return chosen.flatMap(({ path, container }) => {
      const image = now.get(`${path}/image`) ?? container.image;
      return typeof image === "string" ? [change(`${path}/image`, imageWith(image, rule), true, at)] : [];
    });
  });
  const words = (["command", "args"] as const).flatMap((key) =>
    given[`${key}Overrider`].flatMap(({ containerName, operator, value }, index): ObjectOperation[] => {
      const at = `${field}.${key}Overrider[${index}]`;
      const found = containers.find(({ container: { name } }) => name === containerName);
      if (found === undefined) {
        gap(at, `${nameOf(object)} has no container ${containerName}`, "nothing: it changed nothing before");
        return [];
      }
      const path = `${found.path}/${key}`;
      const before = now.get(path) ?? found.container[key];
      const list = Array.isArray(before) ? before : [];
      const after =
        operator === "remove"
          ? list.filter((word) => !value.includes(word))
          : operator === "add"
            ? [...list, ...value]
            : value;
      return [change(path, after, before !== undefined, at)];
    }),
  );
  for (const key of ["labelsOverrider", "annotationsOverrider"] as const) {
    if (given[key].length > 0)
      gap(
        `${field}.${key}`,
        "labels and annotations are the same in all members",
        "write them in the object itself, for all members",
      );
  }
  for (const [index, { fieldPath }] of given.fieldOverrider.entries()) {
    noDifference(fieldPath, `${field}.fieldOverrider[${index}]`, gap);
  }
  const plain = given.plaintext.map(
    ({ path, operator, value }, index): ObjectOperation => ({
      op: operator,
      path,
      value,
      field: `${field}.plaintext[${index}]`,
    }),
  );
  return [...images, ...words, ...plain];
}

function containersOf(object: WrittenObject): { readonly path: string; readonly container: WrittenContainer }[] {
  const spec = [...templatePath(object), "spec"];
  const containers = valueAt(object, [...spec, "containers"]);
  if (!Array.isArray(containers)) return [];
  return containers.flatMap((container: unknown, index) =>
    isContainer(container) ? [{ path: `/${[...spec, "containers", index].join("/")}`, container }] : [],
  );
}

function isContainer(value: unknown): value is WrittenContainer {
  return isJsonObject(value) && typeof value.name === "string";
}

type ImageRule = Overriders["imageOverrider"][number];

/** Changes one component of `[registry/]repository[:tag|@digest]`. */
function imageWith(image: string, { component, operator, value }: ImageRule): string {
  const [, path = "", tag = ""] = /^(.*?)((?::[^:/@]+)?(?:@.*)?)$/.exec(image) ?? [];
  const first = path.split("/")[0] ?? "";
  const hasRegistry = path.includes("/") && (/[.:]/.test(first) || first === "localhost");
  const registry = hasRegistry ? first : "";
  const repository = hasRegistry ? path.slice(first.length + 1) : path;
  const parts = { Registry: registry, Repository: repository, Tag: tag.replace(/^[:@]/, "") };
  const changed = {
    ...parts,
    [component]: operator === "remove" ? "" : operator === "add" ? parts[component] + value : value,
  };
  const mark = changed.Tag === "" ? "" : changed.Tag.includes("sha256:") ? "@" : ":";
  return (
    [changed.Registry, changed.Repository].filter((part) => part !== "").join("/") +
    mark +
    changed.Tag.replace(/^@/, "")
  );
}
