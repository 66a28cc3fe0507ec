import jsonPatch, { type Operation } from "fast-json-patch";
import { describe, expect, test } from "vitest";
import { HOST_LABEL } from "../../../src/api/keys.ts";
import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import { parseLabelSelector, selectorMatches } from "../../../src/api/label-selector.ts";
import { contentText, isDerived, toCopy } from "../../../src/copies/kind.ts";
import { apiVersionOf } from "../../../src/kube/resources.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { drift, host, patchOf, stored } from "./builders.ts";
import { everyKind, type KindUnderTest } from "./every-kind.ts";

const kinds = await everyKind();

/** Makes every object in the value refuse changes. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) for (const each of Object.values(Object.freeze(value))) frozen(each);
  return value;
}

test("finds every kind of the tables", () => {
  const titles = kinds.map(({ title }) => title);
  expect(new Set(titles).size).toBe(titles.length);
  expect(titles).toEqual(expect.arrayContaining(["ConfigMap", "Service", "NetworkPolicy", "Job", "whole services"]));
});

describe.each(kinds.map((each) => [each.title, each] as const))(
  "the kind %s",
  (_title, { kind, source }: KindUnderTest) => {
    const { resource, copyName, applied } = kind;
    const made = toCopy(kind, source, host);
    const copy = stored(made);
    const name = copyName?.(source.metadata, host.id) ?? "web";

    test("makes a copy in the source's place that names its source and this host", () => {
      expect(made).toMatchObject({ apiVersion: apiVersionOf(resource), kind: resource.kind });
      const { namespace } = source.metadata;
      expect([made.metadata?.name, made.metadata?.namespace]).toEqual([name, namespace]);
      expect(made.metadata?.labels?.[HOST_LABEL]).toBe(host.id);
      expect(ownerOf(copy)).toMatchObject({ cluster: host.name, name: "web", uid: "source-uid" });
    });

    test("takes its copy for one, and an object for a derived one that another name or type was copied from", () => {
      expect(isDerived(copy, kind, host.id)).toBe(false);
      expect(isDerived(stored(made, { name: "other" }), kind, host.id)).toBe(true);
      const ofAnother = { resource: { group: "example.com", kind: "Other" }, ...(copyName && { copyName }) };
      expect(isDerived(copy, ofAnother, host.id)).toBe(true);
    });

    test("finds a new copy in step, and patches no field of it", () => {
      expect(drift(kind, copy, source, host)).toBe("none");
      const paths = (patchOf(kind, copy, source, host) as Operation[]).map(({ path }) => path);
      expect(paths.filter((path) => !path.startsWith("/metadata/"))).toEqual([]);
      expect(applied?.isInStep(copy, source)).not.toBe(false);
    });

    test("changes nothing of the source", () => {
      expect(toCopy(kind, frozen(structuredClone(source)), host)).toEqual(made);
    });

    test("compares only fields that it copies", () => {
      const pointers = Object.keys(kind.content(made)).filter((pointer) => pointer.startsWith("/"));
      expect(pointers.filter((pointer) => /^\/(metadata|status)\b/.test(pointer))).toEqual([]);
      const withStatus: Stored<KubeObject> = Object.assign(structuredClone(copy), { status: { phase: "Active" } });
      expect(contentText(kind, withStatus)).toBe(contentText(kind, copy));
    });

    test("lists its own copies by its selector, and knows them by their names", () => {
      const parsed = parseLabelSelector(kind.copies?.labelSelector ?? "");
      expect(parsed.ok && selectorMatches(parsed.selector, made.metadata?.labels ?? {})).toBe(true);
      expect(kind.knownByLabels?.(name, host.id)).not.toBe(false);
    });

    test("keeps the marks of a copy that is stored without its content", () => {
      expect((kind.withoutContent?.(copy) ?? copy).metadata).toEqual(copy.metadata);
    });

    const ofAnother = { ...source, metadata: { ...source.metadata, uid: "earlier" } };
    const earlier = stored(toCopy(kind, ofAnother, host));

    if (applied === undefined) {
      test("brings a copy of an earlier source in step by a patch that names the copy's version", () => {
        const patch = patchOf(kind, earlier, source, host) as Operation[];
        expect(patch).toContainEqual({ op: "add", path: "/metadata/resourceVersion", value: "3" });
        const after = jsonPatch.applyPatch(structuredClone(earlier), patch).newDocument;
        expect(drift(kind, after, source, host)).toBe("none");
        expect(after.metadata.labels).toEqual(made.metadata?.labels);
      });
    } else {
      test("brings a copy of an earlier source in step by an apply that names the copy's version", () => {
        const after = applied.object(earlier, { source, host, left: applied.left(earlier) });
        expect(after.metadata).toMatchObject({ uid: "copy-uid", resourceVersion: "3" });
        expect(drift(kind, stored(after), source, host)).toBe("none");
        expect(applied.isInStep(stored(after), source)).toBe(true);
      });
    }
  },
);
