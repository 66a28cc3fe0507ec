import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BYTES_OF_OTHERS } from "../../../src/api/annotation-room.ts";
import { FORWARDED_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { fingerprints } from "../../../src/pods/fingerprints.ts";
import { forwardPatches, specFollows } from "../../../src/pods/forward.ts";
import { recordOf, writeRecord } from "../../../src/pods/forward-record.ts";
import { type PodParts, pod, proxyPod } from "../../support/builders/pod.ts";

const HOST = { id: "h".repeat(36), name: "c".repeat(63) };
const LONG = "n".repeat(50);
const CONTAINERS = 40;

function keys(count: number): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${"d".repeat(63)}.example.com/${LONG}-${index}`, "v"]),
  );
}

/** Returns a proxy whose containers' names have the longest length. */
function extreme({ metadata, spec }: PodParts = {}): Stored<Pod> {
  const containers = Array.from({ length: CONTAINERS }, (_, index) => ({
    name: `${"c".repeat(60)}${String(index).padStart(3, "0")}`,
    image: "a",
    resources: { requests: { cpu: "1" } },
  }));
  const readinessGates = Array.from({ length: 100 }, (_, index) => ({ conditionType: `example.com/${LONG}-${index}` }));
  return proxyPod({ metadata: { labels: keys(3000), ...metadata }, spec: { containers, readinessGates, ...spec } });
}

function delegateOf(proxy: Stored<Pod>): Stored<Pod> {
  const { metadata = {}, spec = {} } = toDelegate(proxy, HOST, { mode: "host", address: { host: "::1", port: "1" } });
  return pod({ uid: "delegate-uid", metadata, spec });
}

function bytesOf(annotations: Readonly<Record<string, string>> = {}): number {
  return Object.entries(annotations).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
}

describe("a pod with the longest keys, names and annotations", () => {
  test("has a delegate whose annotations the API server takes", () => {
    const longest = { note: "x".repeat(BYTES_OF_OTHERS - "note".length) };
    const name = "p".repeat(253);
    const proxy = extreme({ metadata: { annotations: longest, name, namespace: "s".repeat(63) } });
    expect(bytesOf(delegateOf(proxy).metadata.annotations)).toBeLessThanOrEqual(256 * 1024);
  });

  test("has a delegate that needs no change", () => {
    const proxy = extreme();
    expect(forwardPatches(proxy, delegateOf(proxy))).toEqual([]);
    expect(specFollows(proxy, delegateOf(proxy))).toBe(true);
  });

  test("forwards one container's image, and leaves those that the member changed", () => {
    const proxy = extreme();
    const delegate = delegateOf(proxy);
    const [first, ...others] = delegate.spec?.containers ?? [];
    if (first === undefined) throw new Error("no container");
    const mirrored = { ...delegate, spec: { containers: [{ ...first, image: "mirror/a" }, ...others] } };
    const containers = extreme().spec?.containers.map((one, index) => (index === 3 ? { ...one, image: "b" } : one));
    const [patch] = forwardPatches(extreme({ spec: { containers: containers ?? [] } }), mirrored);
    expect(patch?.body.spec).toEqual({ containers: [{ name: containers?.[3]?.name, image: "b" }] });
  });

  test("lets the keys go that it lost, if Legation wrote them", () => {
    const proxy = extreme();
    const there = delegateOf(proxy);
    const [gone = "", ...kept] = Object.keys(keys(3000));
    const theirs = { ...there, metadata: { ...there.metadata, labels: { ...there.metadata.labels, theirs: "1" } } };
    const labels = Object.fromEntries(kept.map((key) => [key, "v"]));
    const after = extreme({ metadata: { labels } });
    const [patch] = forwardPatches(after, theirs);
    expect(patch?.ifOwned).toEqual({ labels: [gone, "theirs"], annotations: [] });
    const record = patch?.body.metadata.annotations?.[FORWARDED_ANNOTATION] ?? "";
    const annotations = { ...there.metadata.annotations, [FORWARDED_ANNOTATION]: record };
    const followed = { ...theirs, metadata: { ...theirs.metadata, labels: { ...labels, theirs: "1" }, annotations } };
    expect(forwardPatches(after, followed)).toEqual([]);
  });
});

const states = fc.array(fc.constantFrom("same", "other", "absent"), { minLength: CONTAINERS, maxLength: CONTAINERS });

test("a compact record never takes a part for forwarded that is not", () => {
  const proxy = extreme();
  const now = fingerprints(proxy);
  fc.assert(
    fc.property(states, (parts) => {
      const spec = Object.fromEntries(
        Object.entries(now).flatMap(([path, print], index): [string, string][] => {
          const part = parts[index % CONTAINERS];
          return part === "absent" ? [] : [[path, part === "same" ? print : "x"]];
        }),
      );
      const text = writeRecord({ labels: Object.keys(keys(3000)), annotations: [], spec }, proxy);
      expect(text.length).toBeLessThan(3000);
      const read = recordOf(proxy, pod({ metadata: { annotations: { [FORWARDED_ANNOTATION]: text } } })).spec ?? {};
      for (const [path, print] of Object.entries(read)) {
        if (print === now[path]) expect(spec[path]).toBe(print);
      }
    }),
  );
});
