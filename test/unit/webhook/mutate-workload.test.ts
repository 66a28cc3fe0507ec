import { describe, expect, test } from "vitest";
import type { DelegationMode } from "../../../src/api/delegation-mode.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import { apply, type ReviewParts, request } from "./reviews.ts";

type Annotations = Record<string, string>;

const CLUSTERS = "legation.dev/clusters";
const DELEGATE = "legation.dev/delegate";
const GROUP = "legation.dev/group";

/** A workload with annotations on itself and, when given, in its template. */
function workload(
  annotations?: Annotations,
  template?: Annotations,
  spec: object = {},
): { readonly metadata: object; readonly spec: object } {
  return {
    metadata: { name: "web", ...(annotations === undefined ? {} : { annotations }) },
    spec: {
      template: {
        metadata: { labels: { app: "web" }, ...(template === undefined ? {} : { annotations: template }) },
        spec: { containers: [{ name: "main", image: "busybox" }], ...spec },
      },
    },
  };
}

function cronJob(annotations: Annotations, job: Annotations, template: Annotations): object {
  return {
    metadata: { name: "nightly", annotations },
    spec: { jobTemplate: { ...workload(undefined, template), metadata: { annotations: job } } },
  };
}

function changed(parts: ReviewParts): { readonly annotations: unknown; readonly warnings: readonly string[] } {
  const verdict = mutateWorkload(request({ kind: "Deployment", ...parts }), "all");
  if (verdict.kind === "denied") throw new Error(verdict.message);
  const patched: unknown = apply(parts.object, verdict);
  expect(patched).toMatchObject({ spec: { template: { metadata: {} } } });
  const { spec } = patched as { spec: { template: { metadata: { annotations?: unknown } } } };
  return { annotations: spec.template.metadata.annotations, warnings: verdict.warnings };
}

describe("annotations of a workload are copied to the pod template", () => {
  test.each(["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job"])("of a %s", (kind) => {
    const object = workload({ [GROUP]: "west", "example.com/other": "stays" });
    expect(changed({ kind, object }).annotations).toEqual({ [GROUP]: "west" });
  });

  test("beside the template's own", () => {
    const object = workload({ [GROUP]: "west", [DELEGATE]: "true" }, { note: "kept" });
    expect(changed({ object }).annotations).toEqual({ note: "kept", [GROUP]: "west", [DELEGATE]: "true" });
  });

  test("of a template without metadata", () => {
    const object = { metadata: { annotations: { [GROUP]: "west" } }, spec: { template: { spec: {} } } };
    expect(changed({ object }).annotations).toEqual({ [GROUP]: "west" });
  });

  test("of a CronJob, also from its Job template, which wins", () => {
    const object = cronJob({ [GROUP]: "west", [DELEGATE]: "true" }, { [GROUP]: "east" }, { note: "kept" });
    const changed = apply(object, mutateWorkload(request({ kind: "CronJob", object }), "all"));
    expect(changed).toMatchObject({
      spec: {
        jobTemplate: {
          spec: { template: { metadata: { annotations: { note: "kept", [GROUP]: "east", [DELEGATE]: "true" } } } },
        },
      },
    });
  });

  test("unless the template has another value, with a warning", () => {
    const { annotations, warnings } = changed({ object: workload({ [GROUP]: "west" }, { [GROUP]: "east" }) });
    expect(annotations).toEqual({ [GROUP]: "east" });
    expect(warnings).toEqual([`${GROUP}: the pod template says "east", and that counts for its pods`]);
  });

  test("not again where the template has them already", () => {
    const object = workload({ [GROUP]: "west" }, { [GROUP]: "west" });
    expect(mutateWorkload(request({ kind: "Deployment", object }), "all")).toEqual({ kind: "allowed", warnings: [] });
  });
});

describe("a change of the workload's annotations follows in the template", () => {
  const update = (before: object, object: object) => changed({ operation: "UPDATE", oldObject: before, object });

  test.each<[string, Annotations, Annotations, Annotations, Annotations | undefined]>([
    ["a new value", { [GROUP]: "west" }, { [GROUP]: "east" }, { [GROUP]: "west" }, { [GROUP]: "east" }],
    ["a removal", { [GROUP]: "west" }, {}, { [GROUP]: "west", note: "kept" }, { note: "kept" }],
    ["a removal of what the template has otherwise", { [GROUP]: "west" }, {}, { [GROUP]: "east" }, { [GROUP]: "east" }],
    ["a template rewritten without it", { [GROUP]: "west" }, { [GROUP]: "west" }, {}, { [GROUP]: "west" }],
    ["nothing", { note: "a" }, { note: "b" }, { other: "c" }, { other: "c" }],
  ])("%s", (_, before, now, template, expected) => {
    expect(update(workload(before, template), workload(now, template)).annotations).toEqual(expected);
  });

  test.each<[string, { spec: object; status?: object }]>([
    ["is not suspended", { spec: { suspend: false } }],
    ["has started before it was suspended", { spec: { suspend: true }, status: { startTime: "2026-01-01T00:00:00Z" } }],
    ["has pods", { spec: { suspend: true }, status: { active: 1 } }],
  ])("except in a Job that %s, with a warning", (_, { spec, status }) => {
    const parts = { operation: "UPDATE", kind: "Job" } as const;
    const job = workload({ [GROUP]: "west" }, { [GROUP]: "west" });
    const oldObject = { ...job, spec: { ...job.spec, ...spec }, status };
    const verdict = mutateWorkload(request({ ...parts, oldObject, object: workload({}, { [GROUP]: "west" }) }), "all");
    expect(verdict).toEqual({
      kind: "allowed",
      warnings: [
        "the pod template of a Job cannot change unless the Job is suspended and has never started: its pods keep the " +
          "annotations they have",
      ],
    });
    const same = mutateWorkload(request({ ...parts, oldObject, object: oldObject }), "all");
    expect(same).toEqual({ kind: "allowed", warnings: [] });
  });

  test("also in a suspended Job", () => {
    const before = workload({ [GROUP]: "west" }, { [GROUP]: "west" });
    const oldObject = { ...before, spec: { ...before.spec, suspend: true }, status: {} };
    const object = workload({ [GROUP]: "east" }, { [GROUP]: "west" });
    const now = changed({ operation: "UPDATE", kind: "Job", oldObject, object });
    expect(now).toEqual({ annotations: { [GROUP]: "east" }, warnings: [] });
  });
});

describe("an annotation with one value on workload and template", () => {
  const fields = { "f:spec": { "f:template": { "f:metadata": { "f:annotations": { [`f:${GROUP}`]: {} } } } } };
  const applied = JSON.stringify(workload(undefined, { [GROUP]: "west" }));
  const before = workload({ [GROUP]: "west" }, { [GROUP]: "west" });
  const byManager = { managedFields: [{ operation: "Update" }, { operation: "Apply", fieldsV1: fields }] };
  const byKubectl = { annotations: { "kubectl.kubernetes.io/last-applied-configuration": applied } };
  const moved = (metadata: object, own: Annotations = {}): object => {
    const object = workload(own, { [GROUP]: "west" });
    const { annotations } = metadata as { annotations?: Annotations };
    return { ...object, metadata: { ...object.metadata, ...metadata, annotations: { ...own, ...annotations } } };
  };
  const update = (object: object) => changed({ operation: "UPDATE", oldObject: before, object });

  test.each([
    ["a field manager", byManager],
    ["the manifest that was applied", byKubectl],
  ])("the template's own by %s, stays when removed from the workload", (_, metadata) => {
    expect(update(moved(metadata))).toEqual({ annotations: { [GROUP]: "west" }, warnings: [] });
  });

  test("the template's own, wins over a new value of the workload, with a warning", () => {
    expect(update(moved(byManager, { [GROUP]: "east" }))).toEqual({
      annotations: { [GROUP]: "west" },
      warnings: [`${GROUP}: the pod template says "west", and that counts for its pods`],
    });
  });

  test.each([
    ["no manager's by managedFields", { managedFields: [{ operation: "Update", fieldsV1: { "f:spec": {} } }] }],
    ["absent from the applied manifest", { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" } }],
    [
      "beside an unreadable applied manifest",
      { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{" } },
    ],
    ["beside what no API server writes", { managedFields: "none" }],
  ])("%s, is removed with the workload's, with a warning", (_, metadata) => {
    const { annotations, warnings } = update(moved(metadata));
    expect(annotations).toEqual({});
    expect(warnings[0]).toBe(
      `${GROUP}: taken off the pod template, too; if it was to stay there, write it there once more`,
    );
  });
});

describe("a workload that has a controller is never changed", () => {
  test.each(["ReplicaSet", "Job"])("a %s", (kind) => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: "u", controller: true }];
    const object = { ...workload(), metadata: { annotations: { [CLUSTERS]: "west" }, ownerReferences } };
    expect(mutateWorkload(request({ kind, object }), "all")).toEqual({ kind: "allowed", warnings: [] });
  });

  test("unless its owner is no controller", () => {
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "web", uid: "u" }];
    const object = { ...workload(), metadata: { annotations: { [GROUP]: "west" }, ownerReferences } };
    expect(changed({ object }).annotations).toEqual({ [GROUP]: "west" });
  });
});

describe("a malformed workload is refused with every problem and its place", () => {
  test.each<[string, object, string[]]>([
    [
      "on the workload and in its template",
      workload({ [DELEGATE]: "yes" }, { [CLUSTERS]: "" }),
      [`metadata: annotation ${DELEGATE}: "yes"`, `spec.template.metadata: annotation ${CLUSTERS}: names no cluster`],
    ],
    [
      "a template with a node",
      workload({ [DELEGATE]: "true" }, undefined, { nodeName: "n1" }),
      ['spec.template.spec.nodeName: "n1" is a node of this cluster'],
    ],
    [
      "annotations that are no map",
      { metadata: {}, spec: { template: { metadata: { annotations: ["x"] } } } },
      ["spec.template.metadata.annotations: must be a map of strings"],
    ],
  ])("%s", (_, object, messages) => {
    const verdict = mutateWorkload(request({ kind: "Deployment", object }), "all");
    expect(verdict.kind).toBe("denied");
    for (const message of messages) expect(verdict).toMatchObject({ message: expect.stringContaining(message) });
  });

  test("reports a copied annotation once, where the author wrote it", () => {
    const object = workload({ [DELEGATE]: "yes" }, { [DELEGATE]: "yes" });
    const verdict = mutateWorkload(request({ kind: "Deployment", object }), "all");
    expect(verdict).toMatchObject({
      message: expect.stringMatching(/^metadata: annotation [^;]*; write one of them$/),
    });
  });

  test("ignores a node name while the pods stay on the host", () => {
    const object = workload({ [DELEGATE]: "false" }, undefined, { nodeName: "n1" });
    expect(mutateWorkload(request({ kind: "Deployment", object }), "all").kind).toBe("patched");
  });
});

describe("a DaemonSet", () => {
  test.each<[Annotations | undefined, Annotations | undefined, string | undefined]>([
    [undefined, undefined, undefined],
    [{ [DELEGATE]: "false", note: "a" }, { [DELEGATE]: "false" }, undefined],
    [{ [DELEGATE]: "true" }, undefined, `metadata: annotation ${DELEGATE}: a DaemonSet runs on every node`],
    [undefined, { [CLUSTERS]: "west" }, `spec.template.metadata: annotation ${CLUSTERS}: a DaemonSet runs on`],
  ])("with %j on it and %j in its template", (annotations, template, message) => {
    const verdict = mutateWorkload(request({ kind: "DaemonSet", object: workload(annotations, template) }), "all");
    if (message === undefined) expect(verdict).toEqual({ kind: "allowed", warnings: [] });
    else expect(verdict).toEqual({ kind: "denied", message: expect.stringContaining(message) });
  });
});

describe("a workload that does not ask for delegation", () => {
  const group = { "legation.dev/group": "flow-7" };
  const warned = (
    annotations: Annotations,
    template: Annotations | undefined,
    mode: DelegationMode,
  ): readonly string[] => {
    const verdict = mutateWorkload(request({ kind: "Deployment", object: workload(annotations, template) }), mode);
    return verdict.kind === "denied" ? [verdict.message] : verdict.warnings;
  };

  test.each<[string, Annotations, Annotations | undefined]>([
    ["on the workload", group, undefined],
    ["in its template", {}, group],
  ])("gets a warning where pods must ask, and nowhere else: %s", (_, annotations, template) => {
    expect(warned(annotations, template, "annotated")).toEqual([
      'legation.dev/group: does not ask for delegation by itself, so it has no effect here; write legation.dev/delegate: "true", too',
    ]);
    expect(warned(annotations, template, "all")).toEqual([]);
    expect(warned({ ...annotations, [DELEGATE]: "true" }, template, "annotated")).toEqual([]);
  });

  test("gets a warning everywhere beside delegate: false", () => {
    const expected = [`legation.dev/group: has no effect beside ${DELEGATE}: "false"`];
    expect(warned({ ...group, [DELEGATE]: "false" }, undefined, "annotated")).toEqual(expected);
    expect(warned({ ...group, [DELEGATE]: "false" }, undefined, "all")).toEqual(expected);
  });
});

describe("a generic ephemeral volume", () => {
  const volumes = [{ name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } }];
  const isWarnedAbout = (annotations: Annotations, mode: DelegationMode): boolean => {
    const object = workload(annotations, undefined, { volumes });
    const verdict = mutateWorkload(request({ kind: "Deployment", object }), mode);
    return (
      verdict.kind !== "denied" && verdict.warnings.some((warning) => warning.includes("scratch: ephemeral: this"))
    );
  };

  // A pod in overflow mode may need the claim on the host.
  test.each<[Annotations, DelegationMode, boolean]>([
    [{ [DELEGATE]: "true" }, "annotated", true],
    [{ [DELEGATE]: "true" }, "all", true],
    [{ [DELEGATE]: "true" }, "overflow", false],
    [{ "legation.dev/mode": "always" }, "overflow", true],
    [{ "legation.dev/mode": "overflow" }, "annotated", false],
    [{ "legation.dev/mode": "overflow" }, "all", false],
    [{ [DELEGATE]: "false" }, "annotated", false],
  ])("with %j in mode %s gets a warning: %j", (annotations, mode, warned) => {
    expect(isWarnedAbout(annotations, mode)).toBe(warned);
  });
});

test.each<[DelegationMode, string]>([
  ["annotated", "patched"],
  ["all", "denied"],
])("in mode %s answers a workload with a group and a node that does not ask: %s", (mode, kind) => {
  const object = workload({ "legation.dev/group": "flow-7" }, undefined, { nodeName: "node-1" });
  expect(mutateWorkload(request({ kind: "Deployment", object }), mode).kind).toBe(kind);
});

test("warns about the template's fields where a person sees it", () => {
  const object = workload({ [DELEGATE]: "true" }, undefined, { hostNetwork: true });
  expect(changed({ object }).warnings).toEqual(["spec.hostNetwork: uses the member node's network"]);
});

test.each([
  ["another kind", { kind: "Gadget", object: workload({ [CLUSTERS]: "west" }) }],
  ["a deletion", { operation: "DELETE", oldObject: workload({ [CLUSTERS]: "west" }) }],
  ["a workload without a template", { object: { metadata: { annotations: { [CLUSTERS]: "west" } }, spec: {} } }],
] satisfies [string, ReviewParts][])("admits %s", (_, parts) => {
  expect(mutateWorkload(request({ kind: "Deployment", ...parts }), "all")).toEqual({ kind: "allowed", warnings: [] });
});
