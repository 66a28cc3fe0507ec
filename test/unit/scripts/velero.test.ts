import { readFileSync } from "node:fs";
import { join } from "node:path";
import fastJsonPatch from "fast-json-patch";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import { isJsonObject, type JsonObject, pathOfPointer, valueAt } from "../../../src/api/json.ts";
import { toProxy } from "../../../src/pods/proxy.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import { mutateObject } from "../../../webhook/whole-objects.ts";
import { pod } from "../../support/builders/pod.ts";
import { apply, request, withoutEmpty } from "../webhook/reviews.ts";

// Conditions are tested on the object as it was, and the rules that match change it one after the other. Velero's own code is
// internal/resourcemodifiers: to try rules with it, call ApplyResourceModifierRules from a program inside a copy of the module.

const rule = z.strictObject({
  conditions: z.strictObject({
    groupResource: z.string(),
    labelSelector: z
      .strictObject({
        matchExpressions: z.array(z.strictObject({ key: z.string(), operator: z.literal("Exists") })).length(1),
      })
      .optional(),
    matches: z.array(z.strictObject({ path: z.string(), value: z.string() })).default([]),
  }),
  patches: z.array(z.strictObject({ operation: z.literal("remove"), path: z.string() })).default([]),
  mergePatches: z
    .array(z.strictObject({ patchData: z.string().transform((text): unknown => parse(text)) }))
    .default([]),
});
const modifiers = z.strictObject({ version: z.literal("v1"), resourceModifierRules: z.array(rule).nonempty() });
const configMap = z.object({
  data: z.object({ "rules.yaml": z.string().transform((text) => modifiers.parse(parse(text))) }),
});

function rulesOf(file: string): z.output<typeof rule>[] {
  const path = join(import.meta.dirname, "..", "..", "..", "examples", "velero", file);
  return configMap.parse(parse(readFileSync(path, "utf8"))).data["rules.yaml"].resourceModifierRules;
}

/** Restores an object: Velero takes off its status first. */
function restored(file: string, resource: string, stored: JsonObject): unknown {
  const { status: _, ...object } = stored;
  let after: unknown = object;
  for (const { conditions, patches, mergePatches } of rulesOf(file)) {
    const { groupResource, labelSelector, matches } = conditions;
    const labels = valueAt(object, ["metadata", "labels"]);
    const isSelected = (labelSelector?.matchExpressions ?? []).every(
      ({ key }) => isJsonObject(labels) && key in labels,
    );
    const isEqual = matches.every(({ path, value }) => valueAt(object, pathOfPointer(path)) === value);
    if (!["**", resource].includes(groupResource) || !isSelected || !isEqual) continue;
    const operations = patches.map(({ path }) => ({ op: "remove", path }) as const);
    after = fastJsonPatch.applyPatch(structuredClone(after), operations, true).newDocument;
    for (const { patchData } of mergePatches) after = merged(after, patchData);
  }
  return withoutEmpty(after);
}

/** RFC 7386. */
function merged(target: unknown, change: unknown): unknown {
  if (!isJsonObject(change)) return change;
  const before = isJsonObject(target) ? target : {};
  const fields = Object.entries(change).map(([key, value]) => [
    key,
    value === null ? undefined : merged(before[key], value),
  ]);
  return JSON.parse(JSON.stringify({ ...before, ...Object.fromEntries(fields) }));
}

const WHOLE = { "legation.dev/whole": "true" };
const RECORDS = { "legation.dev/cluster": "west", "legation.dev/shares": "{}", "legation.dev/members": "[]" };
const FINALIZERS = ["example.com/mine"];

function typeOf(plural: string, group: string, kind: string, managedBy?: string): DelegatedType {
  const metadata = { name: group === "" ? plural : `${plural}.${group}` };
  const exclusive = managedBy === undefined ? {} : { exclusive: true, managedBy };
  return { metadata, spec: { version: "v1", kind, plural, ...(group === "" ? {} : { group }), ...exclusive } };
}

interface Restored {
  readonly resource: string;
  /** The object as its author wrote it. */
  readonly written: JsonObject;
  /** The object as the host stored it. */
  readonly stored: JsonObject;
}

function recorded(object: JsonObject, annotations: object): JsonObject {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  const before = isJsonObject(metadata.annotations) ? metadata.annotations : {};
  return { ...object, metadata: { ...metadata, annotations: { ...before, ...annotations } } };
}

function wholeJob(kind: "Job" | "CronJob"): Restored {
  const own = { annotations: { ...WHOLE } };
  const template = { metadata: { labels: { app: "sum" } }, spec: { containers: [] } };
  const written: JsonObject =
    kind === "Job"
      ? { metadata: { name: "sum", finalizers: [...FINALIZERS], ...own }, spec: { template } }
      : { metadata: { name: "sum" }, spec: { jobTemplate: { metadata: own, spec: { template } } } };
  const admitted = apply(written, mutateWorkload(request({ group: "batch", kind, object: written }), "annotated"));
  return {
    resource: `${kind.toLowerCase()}s.batch`,
    written,
    stored: recorded(admitted, kind === "Job" ? RECORDS : {}),
  };
}

function wholeObject(type: DelegatedType, spec: object): Restored {
  const { group = "", kind } = type.spec;
  const written = { metadata: { name: "one", annotations: { ...WHOLE } }, spec };
  const admitted = apply(
    written,
    mutateObject(request({ group, kind, object: written }), () => type),
  );
  return { resource: type.metadata.name ?? "", written, stored: recorded(admitted, RECORDS) };
}

function delegatedPod(): Restored {
  const written = pod({
    metadata: { labels: { app: "web" }, annotations: { "legation.dev/clusters": "west" }, finalizers: [...FINALIZERS] },
  });
  const decision = {
    "legation.dev/cluster": "west",
    "legation.dev/delegate-uid": "u",
    "legation.dev/member-node": "n",
    "legation.dev/deletion-cost": "1",
  };
  return { resource: "pods", written, stored: recorded(toProxy(written), decision) };
}

const ALL: readonly [string, Restored][] = [
  ["pod", delegatedPod()],
  ["whole Job", wholeJob("Job")],
  ["CronJob of whole Jobs", wholeJob("CronJob")],
  ["ConfigMap", wholeObject(typeOf("configmaps", "", "ConfigMap"), {})],
  ["Service", wholeObject(typeOf("services", "", "Service"), { type: "LoadBalancer" })],
  ["JobSet", wholeObject(typeOf("jobsets", "jobset.x-k8s.io", "JobSet", "/spec/managedBy"), {})],
  ["MPIJob", wholeObject(typeOf("mpijobs", "kubeflow.org", "MPIJob", "/spec/runPolicy/managedBy"), { runPolicy: {} })],
];

describe("Velero's rules for a cluster without Legation", () => {
  test.each(ALL)("restore a %s as its author wrote it, without finalizers", (_, { resource, written, stored }) => {
    const { status: __, ...object } = written;
    const text = JSON.stringify(object, (key, value) => (key === "finalizers" ? undefined : value));
    expect(restored("without-legation.yaml", resource, stored)).toEqual(JSON.parse(text));
  });

  test("name no item of a list by its place, which fails a restore where the list is shorter", () => {
    const paths = rulesOf("without-legation.yaml").flatMap(({ conditions: { matches }, patches }) => [
      ...matches,
      ...patches,
    ]);
    expect(paths.length).toBeGreaterThan(0);
    for (const { path } of paths) expect(path).not.toMatch(/\/-?\d+(\/|$)/);
  });

  test("leave others' objects as they are", () => {
    const object = {
      metadata: { name: "sum", finalizers: FINALIZERS },
      spec: { managedBy: "kueue.x-k8s.io/multikueue" },
    };
    expect(restored("without-legation.yaml", "jobs.batch", object)).toEqual(object);
  });
});

describe("Velero's rules for a cluster with Legation", () => {
  test.each(ALL)(
    "take off a restored %s what its controller wrote, and leave the marks of admission",
    (_, { resource, stored }) => {
      const { status: __, ...object } = stored;
      const controllers = /^legation.dev\/(cluster|shares|members|delegate-uid|member-node|deletion-cost)$/;
      const text = JSON.stringify(object, (key, value) => (controllers.test(key) ? undefined : value));
      expect(restored("resource-modifiers.yaml", resource, stored)).toEqual(withoutEmpty(JSON.parse(text)));
    },
  );
});
