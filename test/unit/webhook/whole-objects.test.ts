import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import type { FindType } from "../../../webhook/whole.ts";
import { mutateObject } from "../../../webhook/whole-objects.ts";
import { apply, type ReviewParts, request } from "./reviews.ts";

const WHOLE = { "legation.dev/whole": "true" };
const FINALIZER = "legation.dev/whole";
const TYPE: DelegatedType = {
  metadata: { name: "configmaps" },
  spec: { version: "v1", kind: "ConfigMap", plural: "configmaps" },
};
const served: FindType = (group, kind) => (group === "" && kind === "ConfigMap" ? TYPE : "none");

function object(metadata: object): object {
  return { metadata: { name: "one", ...metadata }, data: { a: "1" } };
}

/** Returns the metadata after admission, or why the object is refused. */
function admitted(parts: ReviewParts, find = served): unknown {
  const verdict = mutateObject(request({ kind: "ConfigMap", ...parts }), find);
  return verdict.kind === "denied" ? verdict.message : apply(parts.object, verdict);
}

describe("an object with legation.dev/whole", () => {
  const marked = object({ annotations: WHOLE, labels: WHOLE, finalizers: [FINALIZER] });

  test("gets its label and finalizer, also when an update leaves them out", () => {
    expect(admitted({ object: object({ annotations: WHOLE }) })).toEqual(marked);
    expect(admitted({ operation: "UPDATE", object: object({ annotations: WHOLE }), oldObject: marked })).toEqual(
      marked,
    );
    expect(admitted({ object: marked })).toEqual(marked);
  });

  test("may be changed when the controller has recorded its members", () => {
    const recorded = object({ annotations: { ...WHOLE, "legation.dev/members": "[]" } });
    expect(admitted({ operation: "UPDATE", object: recorded, oldObject: marked })).toMatchObject({
      metadata: { labels: WHOLE, finalizers: [FINALIZER] },
    });
  });

  test("gets no finalizer while it is being deleted", () => {
    const deletionTimestamp = "2026-01-01T00:00:00Z";
    const deleted = object({ annotations: WHOLE, labels: WHOLE, deletionTimestamp });
    expect(admitted({ operation: "UPDATE", object: deleted, oldObject: marked })).toEqual(deleted);
  });

  test("keeps its finalizer when the annotation goes, and says so by its label", () => {
    const taken = { labels: { "legation.dev/whole": "false" }, finalizers: [FINALIZER] };
    expect(
      admitted({ operation: "UPDATE", object: object({ labels: WHOLE, finalizers: [FINALIZER] }), oldObject: marked }),
    ).toEqual(object(taken));
    expect(admitted({ operation: "UPDATE", object: object({ finalizers: [FINALIZER] }), oldObject: marked })).toEqual(
      object(taken),
    );
  });

  test("keeps its finalizer when an update takes annotation, label and finalizer away at once", () => {
    expect(admitted({ operation: "UPDATE", object: object({}), oldObject: marked })).toEqual(
      object({ labels: { "legation.dev/whole": "false" }, finalizers: [FINALIZER] }),
    );
  });

  test("has no label without annotation and finalizer", () => {
    expect(admitted({ object: object({ labels: { ...WHOLE, app: "a" } }) })).toEqual(object({ labels: { app: "a" } }));
  });

  test.each<[string, object, string]>([
    ["a word that is no flag", { annotations: { "legation.dev/whole": "yes" } }, 'neither "true" nor "false"'],
    [
      "an annotation for pods",
      { annotations: { ...WHOLE, "legation.dev/failover": "never" } },
      "annotation legation.dev/failover: is not read on an object with legation.dev/whole",
    ],
    [
      "a wrong policy",
      { annotations: { ...WHOLE, "legation.dev/on-delete": "keep" } },
      '"keep" is neither "delete" nor "orphan"',
    ],
    [
      "a selector that is none",
      { annotations: { ...WHOLE, "legation.dev/cluster-selector": "a in" } },
      "is not a label selector",
    ],
  ])("is refused with %s", (_, metadata, message) => {
    expect(admitted({ object: object(metadata) })).toContain(message);
  });
});

describe("overrides of an object", () => {
  const type: DelegatedType = {
    metadata: { name: "widgets.example.com" },
    spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets", retain: ["/spec/items/*/size"] },
  };

  function overridden(overrides: readonly object[], fields: object = { spec: { color: "red", items: [] } }): object {
    const annotations = { ...WHOLE, "legation.dev/overrides": JSON.stringify(overrides) };
    return { metadata: { name: "one", annotations }, ...fields };
  }

  const blue = { op: "replace", path: "/spec/color", value: "blue" };

  test("are admitted where they fit in each member that is named", () => {
    const overrides = [
      { clusters: ["west"], patch: [{ op: "add", path: "/spec/shape", value: "round" }] },
      { clusters: ["west"], patch: [{ op: "remove", path: "/spec/shape" }, blue] },
      { clusterSelector: "gpu", patch: [{ op: "remove", path: "/spec/gpu" }] },
    ];
    const labels = { labels: WHOLE, finalizers: [FINALIZER] };
    expect(admitted({ object: overridden(overrides) }, () => type)).toMatchObject({ metadata: labels });
  });

  test("that a later change of the type forbids keep no author from another change", () => {
    const object = overridden([{ patch: [blue] }]);
    const later: DelegatedType = { ...type, spec: { ...type.spec, retain: ["/spec/color"] } };
    expect(admitted({ object }, () => later)).toContain("leaves /spec/color out of copies");
    expect(admitted({ operation: "UPDATE", object, oldObject: object }, () => later)).toMatchObject(object);
  });
});

describe("an object of a type that members do not get", () => {
  const asking = object({ annotations: WHOLE });

  test("is refused at creation if its type goes with pods, and may be changed if it is older than that", () => {
    const following: FindType = () => ({ ...TYPE, spec: { ...TYPE.spec, follows: { names: [{ label: "group" }] } } });
    expect(admitted({ object: object({ annotations: WHOLE }) }, following)).toContain(
      "objects of this type go to members with the pods that name them; remove it",
    );
    const before = object({ annotations: WHOLE });
    expect(admitted({ operation: "UPDATE", object: before, oldObject: before }, following)).toEqual(before);
  });

  test("is refused at admission, as no DelegatedType names it", () => {
    expect(admitted({ kind: "Lease", object: asking })).toContain(
      "no member gets a Lease, since no DelegatedType names it",
    );
  });

  test("is refused while types are not known, with a reason of its own", () => {
    expect(admitted({ object: asking }, () => "unknown")).toContain("try again soon");
  });

  test("is refused when the type is being deleted, and may be updated", () => {
    const leaving = { ...TYPE, metadata: { ...TYPE.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(admitted({ object: asking }, () => leaving)).toContain("DelegatedType configmaps is being deleted");
    expect(admitted({ operation: "UPDATE", object: asking, oldObject: asking }, () => leaving)).toEqual(asking);
  });
});

describe("an object of a type with managedBy", () => {
  const type: DelegatedType = {
    metadata: { name: "jobsets.example.com" },
    spec: { group: "example.com", version: "v1", kind: "JobSet", plural: "jobsets", managedBy: "/spec/managedBy" },
  };
  const managed = "legation.dev/whole";

  function jobSet(metadata: object, spec: object = {}): object {
    return { metadata: { name: "one", ...metadata }, spec: { size: 1, ...spec } };
  }

  const marked = jobSet({ annotations: WHOLE, labels: WHOLE, finalizers: [FINALIZER] }, { managedBy: managed });

  test("gets the field when it is created, and keeps it", () => {
    expect(admitted({ object: jobSet({ annotations: WHOLE }) }, () => type)).toEqual(marked);
    const annotations = { ...WHOLE, "legation.dev/cluster": "west" };
    const placed = jobSet({ annotations, labels: WHOLE, finalizers: [FINALIZER] }, { managedBy: managed });
    expect(admitted({ operation: "UPDATE", object: placed, oldObject: placed }, () => type)).toEqual(placed);
  });

  test("stays without the field if it is from before its type named one", () => {
    const before = jobSet({ annotations: WHOLE, labels: WHOLE, finalizers: [FINALIZER] });
    const after = jobSet({ annotations: WHOLE, labels: WHOLE, finalizers: [FINALIZER] }, { size: 2 });
    expect(admitted({ operation: "UPDATE", object: after, oldObject: before }, () => type)).toEqual(after);
  });

  test.each<[string, ReviewParts, string]>([
    [
      "loses annotation and finalizer at once",
      { operation: "UPDATE", object: jobSet({}, { managedBy: managed }), oldObject: marked },
      "is read when the object is created",
    ],
    [
      "has another manager",
      { object: jobSet({ annotations: WHOLE }, { managedBy: "kueue.x-k8s.io/multikueue" }) },
      "multikueue manages the object",
    ],
    [
      "runs on the host already",
      { operation: "UPDATE", object: jobSet({ annotations: WHOLE }), oldObject: jobSet({}) },
      "is read when the object is created",
    ],
    [
      "runs in a member and loses the annotation",
      { operation: "UPDATE", object: jobSet({ finalizers: [FINALIZER] }, { managedBy: managed }), oldObject: marked },
      "is read when the object is created",
    ],
  ])("is refused when it %s", (_, parts, message) => {
    expect(admitted(parts, () => type)).toContain(message);
  });
});

test("an update that leaves an override without its field is refused, and one that changes something else is not", () => {
  const override = [{ clusters: ["west"], patch: [{ op: "replace", path: "/data/a", value: "2" }] }];
  const annotations = { ...WHOLE, "legation.dev/overrides": JSON.stringify(override) };
  const metadata = { name: "one", annotations, labels: WHOLE, finalizers: [FINALIZER] };
  const before = { metadata, data: { a: "1" } };
  const more = { metadata, data: { a: "1", b: "2" } };
  expect(admitted({ operation: "UPDATE", object: more, oldObject: before })).toEqual(more);
  const less = { metadata, data: {} };
  expect(admitted({ operation: "UPDATE", object: less, oldObject: before })).toContain("/data/a");
});

describe("an object with scheduling preferences", () => {
  const preferences = '{"clusters": {"west": {"weight": 1}}}';
  const annotations = { ...WHOLE, "legation.dev/scheduling-preferences": preferences };
  const divisible: DelegatedType = { ...TYPE, spec: { ...TYPE.spec, replicas: "/spec/replicas" } };
  const written = { metadata: { name: "one", annotations }, spec: { replicas: 3 } };

  test("is divided where its type says what", () => {
    const metadata = { name: "one", annotations, labels: WHOLE, finalizers: [FINALIZER] };
    expect(admitted({ object: written }, () => divisible)).toEqual({ ...written, metadata });
  });

  test.each<[string, DelegatedType, object, string]>([
    ["of a type without replicas", TYPE, written, "is not read on an object"],
    ["without the number", divisible, { ...written, spec: {} }, "the object has no number at /spec/replicas"],
    [
      "that rebalance",
      divisible,
      {
        ...written,
        metadata: {
          name: "one",
          annotations: { ...annotations, "legation.dev/scheduling-preferences": '{"rebalance": true}' },
        },
      },
      "rebalance moves pods",
    ],
  ])("is refused %s", (_, type, object, message) => {
    expect(admitted({ object }, () => type)).toContain(message);
  });
});

test("an object of a built-in type is marked by the record of its type", () => {
  const job = { metadata: { name: "sum", annotations: WHOLE }, spec: { template: {} } };
  expect(admitted({ kind: "Job", object: job })).toMatchObject({
    metadata: { labels: WHOLE, finalizers: [FINALIZER] },
    spec: { managedBy: "legation.dev/whole" },
  });
  expect(admitted({ kind: "Job", object: { ...job, metadata: { name: "sum" } } })).not.toHaveProperty(
    "metadata.labels",
  );
});
