import { describe, expect, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { driftOf, toCopy } from "../../../src/copies/kind.ts";
import { delegatedKind } from "../../../src/copies/objects.ts";

const HOST = { id: "host-1", name: "home" };
const WIDGETS: DelegatedType = {
  metadata: { name: "widgets.example.com" },
  spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets", retain: ["/spec/replicas"] },
};

function kindOf(type: DelegatedType): ReturnType<typeof delegatedKind> {
  return delegatedKind(type, (text) => text);
}

function source(fields: object, annotations: Record<string, string> = {}): Stored<AnyObject> {
  const metadata = { name: "one", namespace: "team", uid: "u1", resourceVersion: "1", annotations };
  return { apiVersion: "example.com/v1", kind: "Widget", metadata, status: { ready: true }, ...fields };
}

/** A copy as the member's API server stores it. */
function stored(made: AnyObject, fields: object = {}): Stored<AnyObject> {
  return { ...made, ...fields, metadata: { name: "one", ...made.metadata, uid: "m1", resourceVersion: "5" } };
}

describe("the copy of a whole object", () => {
  const kind = kindOf(WIDGETS);

  test("has what its author wrote, without status and retained fields", () => {
    const copy = toCopy(kind, source({ spec: { replicas: 3, size: 1 }, data: { a: "1" }, extra: null }), HOST);
    expect(copy).toMatchObject({ apiVersion: "example.com/v1", kind: "Widget", spec: { size: 1 }, data: { a: "1" } });
    expect(copy).not.toHaveProperty("status");
    expect(copy).not.toHaveProperty("spec.replicas");
    expect(copy).not.toHaveProperty("extra");
    expect(copy.metadata?.labels).toMatchObject({ "legation.dev/whole": "true" });
  });

  test.each<[string, boolean, object, object]>([
    ["equal", true, { spec: { size: 1 } }, {}],
    [
      "with defaults of the member",
      true,
      { spec: { size: 1, list: [{ a: 1 }] } },
      { spec: { size: 1, list: [{ a: 1, b: 2 }], c: 3 } },
    ],
    ["with a retained field", true, { spec: { size: 1, replicas: 2 } }, { spec: { size: 1, replicas: 9 } }],
    ["whose member drops empty fields", true, { spec: { size: 1, labels: {}, list: [] } }, { spec: { size: 1 } }],
    ["with another value", false, { spec: { size: 1 } }, { spec: { size: 2 } }],
    ["with a longer list", false, { spec: { list: [1] } }, { spec: { list: [1, 2] } }],
    ["without a field", false, { spec: { size: 1, color: "red" } }, { spec: { size: 1 } }],
    ["without its spec", false, { spec: { size: 1 } }, { spec: undefined }],
  ])("%s is in step: %s", (_, inStep, written, there) => {
    const object = source(written);
    expect(kind.applied.isInStep(stored(toCopy(kind, object, HOST), there), object)).toBe(inStep);
  });

  test.each([
    [true, "immutable"],
    [false, "content"],
  ] as const)("of an earlier object is replaced where it runs something: %s", (exclusive, expected) => {
    const its = kindOf({ ...WIDGETS, spec: { ...WIDGETS.spec, exclusive } });
    const before = source({ spec: { size: 1 } });
    const object = { ...before, metadata: { ...before.metadata, uid: "u2" } };
    const comparison = { source: object, host: HOST, sameContent: true };
    expect(driftOf(its, stored(toCopy(its, before, HOST)), comparison)).toBe(expected);
  });

  test.each([
    ["secrets", "", { labelSelector: "legation.dev/whole" }],
    ["widgets", "example.com", undefined],
  ] as const)(
    "is known by the label of whole objects only where pods have copies, too: %s%s",
    (plural, group, expected) => {
      const its = kindOf({ metadata: { name: plural }, spec: { ...WIDGETS.spec, plural, group } });
      expect(its.copies).toEqual(expected);
    },
  );

  test("is not in step when it lost its label in the member", () => {
    const object = source({ spec: { size: 1 } });
    const copy = stored(toCopy(kind, object, HOST));
    const { "legation.dev/whole": _, ...labels } = copy.metadata.labels ?? {};
    expect(kind.applied.isInStep({ ...copy, metadata: { ...copy.metadata, labels } }, object)).toBe(false);
  });

  test("is not in step when its source has lost a field, which the member's API server has to remove", () => {
    const copy = stored(toCopy(kind, source({ spec: { size: 1, color: "red" } }), HOST));
    expect(kind.applied.isInStep(copy, source({ spec: { size: 1 } }))).toBe(false);
  });

  test("is made of the host's own objects, and not of another host's copies", () => {
    const labelled = (metadata: object): boolean | undefined => {
      const object = source({});
      return kind.isCopied?.({
        ...object,
        metadata: { ...object.metadata, labels: { "legation.dev/host": "another" }, ...metadata },
      });
    };
    expect(kind.isCopied?.(source({}))).toBe(true);
    expect(labelled({})).toBe(false);
    // The author has added the label.
    expect(labelled({ finalizers: ["legation.dev/whole"] })).toBe(true);
  });

  test("is applied without what other managers own, and is in step so", () => {
    const object = source({ spec: { size: 1, color: "red" } });
    const copy = stored(toCopy(kind, object, HOST));
    expect(kind.applied.isNew(copy)).toBe(true);
    const applied = kind.applied.object(copy, {
      source: object,
      host: HOST,
      left: { givenUp: [".spec.color"], lost: [] },
    });
    expect(applied).toMatchObject({ spec: { size: 1 }, metadata: { uid: "m1", resourceVersion: "5" } });
    expect(applied).not.toHaveProperty("spec.color");
    const after = stored(applied, { spec: { size: 1, color: "blue" } });
    expect(kind.applied.isNew(after)).toBe(false);
    expect(kind.applied.isInStep(after, object)).toBe(true);
    const orphaning = source({ spec: { size: 1, color: "red" } }, { "legation.dev/on-delete": "orphan" });
    expect(kind.applied.isInStep(after, orphaning)).toBe(false);
    // Another version is tried whole again.
    expect(kind.applied.isInStep(after, source({ spec: { size: 2, color: "red" } }))).toBe(false);
  });

  test("gives up fields that its type retains since it was last applied", () => {
    const object = source({ spec: { size: 1, replicas: 3 } });
    const applied = (of: ReturnType<typeof kindOf>, copy: Stored<AnyObject>): Stored<AnyObject> =>
      stored(of.applied.object(copy, { source: object, host: HOST, left: { givenUp: [], lost: [] } }) ?? {});
    const { retain: _, ...spec } = WIDGETS.spec;
    const before = applied(kindOf({ ...WIDGETS, spec }), stored(toCopy(kind, object, HOST)));
    expect(kind.applied.newlyRetained(before)).toEqual(["/spec/replicas"]);
    expect(kind.applied.isInStep(before, object)).toBe(false);
    expect(kind.applied.newlyRetained(applied(kind, before))).toEqual([]);
  });

  describe("has had a field applied", () => {
    const object = source({ spec: { size: 1, color: "red", ports: [{ port: 80 }] } }, { note: "a" });
    const copy = stored(toCopy(kind, object, HOST));
    const applied = (left: { givenUp: readonly string[]; lost: readonly string[] }) =>
      stored(kind.applied.object(copy, { source: object, host: HOST, left }));
    const recorded = (record: object) =>
      stored({ metadata: { annotations: { "legation.dev/applied": JSON.stringify(record) } } });
    const readRecord = ({ metadata }: Stored<AnyObject>): { digest?: string } =>
      JSON.parse(metadata.annotations?.["legation.dev/applied"] ?? "{}");
    const changed = source({ spec: { size: 2, color: "red", ports: [{ port: 80 }], shape: "round" } });

    test.each<[string, boolean, Stored<AnyObject>, Stored<AnyObject>, string]>([
      ["a field of its source", true, copy, object, ".spec.size"],
      ["a field of an item", true, copy, object, ".spec.ports[port=80].port"],
      ["an annotation", true, copy, object, ".metadata.annotations.note"],
      ["a mark of Legation", true, copy, object, ".metadata.labels.legation.dev/host"],
      ["a field that another manager took", true, applied({ givenUp: [], lost: [".spec.size"] }), object, ".spec.size"],
      ["a field whose value has changed", true, copy, changed, ".spec.size"],
      ["a retained field", false, copy, source({ spec: { size: 1, replicas: 3 } }), ".spec.replicas"],
      ["a field that was given up", false, applied({ givenUp: [".spec.size"], lost: [] }), object, ".spec.size"],
      ["a field that its source has got since", false, copy, changed, ".spec.shape"],
      [
        "a field that an earlier release, which recorded no names, applied",
        true,
        recorded({ digest: readRecord(copy).digest }),
        object,
        ".spec.size",
      ],
      [
        "a field that an earlier release gave up",
        false,
        recorded({ digest: readRecord(copy).digest, givenUp: [".spec.size"] }),
        object,
        ".spec.size",
      ],
      ["a field of a copy without a record", false, stored({ metadata: {} }), object, ".spec.size"],
    ])("knows %s: %s", (_, expected, there, of, field) => {
      expect(kind.applied.wasApplied(there, of, field)).toBe(expected);
    });

    test("knows no field after a restart when its source has other fields, and all when only values have changed", () => {
      const restarted = kindOf(WIDGETS);
      expect(restarted.applied.wasApplied(copy, changed, ".spec.size")).toBe(false);
      const { size: _, ...rest } = object.spec as { size: number };
      const revalued = source({ spec: { ...rest, size: 5 } }, { note: "b" });
      expect(restarted.applied.wasApplied(copy, revalued, ".spec.size")).toBe(true);
    });
  });

  test("is put back unless its type reports drift, or it was the member's own", () => {
    const object = source({ spec: { size: 1 } }, { "legation.dev/on-conflict": "adopt" });
    const restores = (drift: "Restore" | "Report" | undefined): boolean => {
      const its = kindOf({ ...WIDGETS, spec: { ...WIDGETS.spec, ...(drift === undefined ? {} : { drift }) } });
      return its.applied.restores(stored(toCopy(its, object, HOST)));
    };
    expect([restores(undefined), restores("Restore"), restores("Report")]).toEqual([true, true, false]);
    const adopted = { metadata: { annotations: { ...kind.applied.adoptionMarks(object)?.annotations } } };
    expect(kind.applied.restores(stored(adopted))).toBe(false);
  });
});
