import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import { type FindType, mutateObject } from "../../../webhook/mutate-object.ts";
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

describe("an object of a type that members do not get", () => {
  const asking = object({ annotations: WHOLE });

  test("is refused", () => {
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

  test.each<[string, ReviewParts, string]>([
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
