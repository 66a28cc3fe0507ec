import { describe, expect, test } from "vitest";
import type { DelegationMode } from "../../../src/api/delegation-mode.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import { apply, request } from "./reviews.ts";

type Annotations = Record<string, string>;

const CLUSTERS = "legation.dev/clusters";
const AFFINITY = "legation.dev/cluster-affinity";
const DELEGATE = "legation.dev/delegate";
const GROUP = "legation.dev/group";
const WISHES_OF = "legation.dev/wishes-of";
const OUTDATED = "legation.dev/outdated-in-template";
const MARKED = { [WISHES_OF]: "Deployment/web" };
const LABELED = { "legation.dev/wishes": "true" };

interface Workload {
  readonly metadata: {
    readonly name?: string;
    readonly labels?: Annotations;
    readonly annotations: Annotations;
    readonly managedFields?: unknown;
  };
  readonly spec: {
    readonly template: { readonly metadata: { readonly annotations: Annotations }; readonly spec: object };
  };
}

function workload(annotations: Annotations = {}, template: Annotations = {}, metadata: object = {}): Workload {
  return {
    metadata: { name: "web", annotations, ...metadata },
    spec: { template: { metadata: { annotations: template }, spec: { containers: [] } } },
  };
}

interface Admitted {
  readonly template: Annotations;
  readonly labels: Annotations | undefined;
  readonly annotations: Annotations;
  readonly warnings: readonly string[];
  readonly object: Workload;
}

function admitted(
  object: Workload,
  oldObject?: Workload,
  mode: DelegationMode | "any" = "all",
  kind = "Deployment",
): Admitted {
  const operation = oldObject === undefined ? "CREATE" : "UPDATE";
  const verdict = mutateWorkload(request({ kind, operation, object, oldObject: oldObject ?? null }), mode);
  const { metadata, spec } = apply(object, verdict);
  const warnings = verdict.kind === "denied" ? [verdict.message] : verdict.warnings;
  return {
    template: spec.template.metadata.annotations,
    labels: metadata.labels,
    annotations: metadata.annotations,
    warnings,
    object: { metadata, spec },
  };
}

const create = (annotations: Annotations, mode: DelegationMode, kind = "Deployment"): Admitted =>
  admitted(workload(annotations), undefined, mode, kind);

/** Returns the workload with other annotations of its own, as an author leaves it. */
function withAnnotations({ metadata, spec }: Workload, annotations: Annotations): Workload {
  return { metadata: { ...metadata, annotations }, spec };
}

describe("a workload that is created with wishes", () => {
  test.each(["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"])(
    "has a template that names it, and a label: %s",
    (kind) => {
      const { template, labels, warnings } = create({ [CLUSTERS]: "west" }, "annotated", kind);
      expect({ template, labels, warnings }).toEqual({
        template: { [WISHES_OF]: `${kind}/web` },
        labels: LABELED,
        warnings: [],
      });
    },
  );

  test.each<[string, Annotations, DelegationMode, Annotations]>([
    ["wishes of every kind", { [CLUSTERS]: "west", [AFFINITY]: "{}" }, "all", MARKED],
    ["annotations that change the pod, too", { [CLUSTERS]: "west", [GROUP]: "a" }, "all", { ...MARKED, [GROUP]: "a" }],
    ["delegate", { [AFFINITY]: "{}", [DELEGATE]: "true" }, "annotated", { ...MARKED, [DELEGATE]: "true" }],
    ["wishes of another project", { "multicluster.admiralty.io/clustername": "west" }, "annotated", MARKED],
  ])("keeps wishes out of its template: %s", (_, annotations, mode, template) => {
    expect(create(annotations, mode)).toMatchObject({ template, labels: LABELED });
  });

  test.each<[string, Annotations, DelegationMode, Annotations]>([
    ["that do not ask for delegation", { [AFFINITY]: "{}" }, "annotated", {}],
    ["beside delegate: false", { [CLUSTERS]: "west", [DELEGATE]: "false" }, "all", { [DELEGATE]: "false" }],
  ])("has no marks with wishes %s", (_, annotations, mode, template) => {
    const { template: written, labels } = create(annotations, mode);
    expect({ written, labels }).toEqual({ written: template, labels: undefined });
  });

  test("has them in its template if its name is generated after admission", () => {
    const object = workload({ [CLUSTERS]: "west" }, {}, { name: undefined, generateName: "web-" });
    expect(admitted(object)).toMatchObject({ template: { [CLUSTERS]: "west" }, labels: undefined });
  });

  test("is warned of a wish that its template overrides", () => {
    const { template, labels, warnings } = admitted(workload({ [CLUSTERS]: "west" }, { [CLUSTERS]: "east" }));
    expect({ template, labels, warnings }).toEqual({
      template: { [CLUSTERS]: "east" },
      labels: undefined,
      warnings: [`${CLUSTERS}: the pod template says "east", and that counts for its pods`],
    });
  });

  test("is named by its own template, whichever workload an exported template names", () => {
    const object = workload({ [CLUSTERS]: "west" }, { [WISHES_OF]: "Deployment/other" });
    expect(admitted(object).template).toEqual(MARKED);
  });

  test("is admitted a second time without a change", () => {
    const { object } = create({ [CLUSTERS]: "west" }, "annotated");
    expect(admitted(object, undefined, "annotated").object).toEqual(object);
    expect(admitted(object, object, "annotated").object).toEqual(object);
  });
});

describe("a change of wishes leaves the template alone", () => {
  const { object: created } = create({ [CLUSTERS]: "west" }, "all");

  test.each<[string, Annotations]>([
    ["another value", { [CLUSTERS]: "east" }],
    ["a further wish", { [CLUSTERS]: "west", [AFFINITY]: "{}" }],
    ["no wish any more, in a namespace that delegates every pod", {}],
  ])("%s", (_, annotations) => {
    expect(admitted(withAnnotations(created, annotations), created)).toMatchObject({
      template: MARKED,
      labels: LABELED,
      warnings: [],
    });
  });

  test("also when the client writes template and labels without the marks", () => {
    const { template, labels } = admitted(workload({ [CLUSTERS]: "east" }), created);
    expect({ template, labels }).toEqual({ template: MARKED, labels: LABELED });
  });

  test("the first wish of a workload whose pods are delegated", () => {
    const before = workload({ [DELEGATE]: "true" }, { [DELEGATE]: "true" });
    const now = withAnnotations(before, { [DELEGATE]: "true", [CLUSTERS]: "west" });
    const { template, labels } = admitted(now, before, "annotated");
    expect({ template, labels }).toEqual({ template: { [DELEGATE]: "true" }, labels: LABELED });
  });
});

describe("pods that are to be delegated, or no longer, are replaced", () => {
  test("the first wish of a workload on the host asks for delegation", () => {
    const { template } = admitted(workload({ [CLUSTERS]: "west" }), workload(), "annotated");
    expect(template).toEqual(MARKED);
  });

  test.each<[string, Annotations]>([
    ["no wish asks any more", {}],
    ["delegate: false does not want it", { [CLUSTERS]: "west", [DELEGATE]: "false" }],
  ])("%s", (_, annotations) => {
    const { object: created } = create({ [CLUSTERS]: "west" }, "annotated");
    const { template } = admitted(withAnnotations(created, annotations), created, "annotated");
    expect(template[WISHES_OF]).toBeUndefined();
  });
});

describe("a template with copies by an earlier release", () => {
  const copied = { [CLUSTERS]: "west" };
  const before = workload(copied, copied);

  test("is left alone by an update of something else", () => {
    const now = workload({ ...copied, note: "new" }, copied);
    expect(admitted(now, before, "annotated").object).toEqual(now);
  });

  test.each<[string, Annotations, Annotations]>([
    ["changed", { [CLUSTERS]: "east" }, copied],
    ["removed", {}, copied],
    ["changed by a client that writes a template without the copy", { [CLUSTERS]: "east" }, {}],
  ])("keeps them, outdated, when the wish is %s", (_, annotations, template) => {
    const now = admitted(workload(annotations, template), before);
    expect(now).toMatchObject({ template: copied, labels: LABELED, warnings: [] });
    expect(now.annotations).toEqual({ ...annotations, [OUTDATED]: CLUSTERS });
    expect(admitted(now.object, now.object).object).toEqual(now.object);
    // A client that replaces all annotations changes nothing either.
    expect(admitted(workload(annotations, template), now.object).object).toEqual(now.object);
  });

  test("loses them when no wish asks for delegation any more", () => {
    const now = admitted(workload({}, copied), before, "annotated");
    expect(now).toMatchObject({ template: {}, labels: undefined, annotations: {} });
  });

  test("has an own value again once its author writes one", () => {
    const { object: outdated } = admitted(workload({ [CLUSTERS]: "east" }, copied), before);
    const { metadata } = outdated;
    const now = admitted({ ...workload({}, { [CLUSTERS]: "north" }), metadata }, outdated);
    expect(now).toMatchObject({ template: { [CLUSTERS]: "north" }, annotations: { [CLUSTERS]: "east" } });
    expect(now.annotations[OUTDATED]).toBeUndefined();
  });

  test("keeps a value that a field manager wrote there, with a warning", () => {
    const fields = { "f:spec": { "f:template": { "f:metadata": { "f:annotations": { [`f:${CLUSTERS}`]: {} } } } } };
    const managedFields = [{ operation: "Apply", fieldsV1: fields }];
    const now = admitted(workload({ [CLUSTERS]: "east" }, copied, { managedFields }), before);
    expect(now.annotations[OUTDATED]).toBeUndefined();
    expect(now.warnings).toEqual([`${CLUSTERS}: the pod template says "west", and that counts for its pods`]);
  });
});

test("refuses wishes-of on the workload itself", () => {
  const verdict = mutateWorkload(
    request({ kind: "Deployment", object: workload({ [WISHES_OF]: "Deployment/a" }) }),
    "all",
  );
  expect(verdict).toEqual({
    kind: "denied",
    message: `metadata: annotation ${WISHES_OF}: is read on pods alone; remove it`,
  });
});

describe("a second call, which does not know the namespace's mode", () => {
  const wishes: readonly Annotations[] = [
    {},
    { [CLUSTERS]: "west" },
    { [CLUSTERS]: "east" },
    { [AFFINITY]: "{}" },
    { [DELEGATE]: "true" },
    { [CLUSTERS]: "west", [DELEGATE]: "false" },
  ];
  const templates: readonly Annotations[] = [{}, { [CLUSTERS]: "west" }, MARKED, { ...MARKED, [CLUSTERS]: "west" }];

  test.each(["annotated", "all", "overflow"] as const)("changes nothing after the first, of mode %s", (mode) => {
    for (const before of [undefined, ...wishes])
      for (const after of wishes)
        for (const template of templates)
          for (const written of templates) {
            const old = before && admitted(workload(before, template), undefined, mode).object;
            const first = admitted(workload(after, written), old, mode).object;
            const about = JSON.stringify({ before, after, template, written });
            expect(admitted(first, old, "any").object, about).toEqual(first);
          }
  });

  test("does the work of a first one that died", () => {
    expect(admitted(workload({ [CLUSTERS]: "west" }), undefined, "any").template).toEqual(MARKED);
    const { object: created } = create({ [CLUSTERS]: "west" }, "annotated");
    expect(admitted(withAnnotations(created, { [CLUSTERS]: "east" }), created, "any").template).toEqual(MARKED);
  });
});
