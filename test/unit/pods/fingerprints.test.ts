import { expect, test } from "vitest";
import { fingerprint, fingerprints } from "../../../src/pods/fingerprints.ts";

test("a fingerprint does not depend on the order of fields", () => {
  expect(fingerprint({ a: 1, b: { c: 2, d: 3 } })).toBe(fingerprint({ b: { d: 3, c: 2 }, a: 1 }));
  expect(fingerprint({ a: 1 })).not.toBe(fingerprint({ a: 2 }));
});

test("fingerprints are of the parts that can change, by path", () => {
  const resources = { requests: { cpu: "1" } };
  const spec = {
    initContainers: [{ name: "init", image: "busybox" }],
    containers: [{ name: "main", image: "nginx", resources }],
    ephemeralContainers: [{ name: "debug" }],
    activeDeadlineSeconds: 60,
    nodeName: "legation-west",
  };
  expect(fingerprints({ spec })).toEqual({
    "image/init": fingerprint("busybox"),
    "image/main": fingerprint("nginx"),
    "resources/main": fingerprint(resources),
    "ephemeral/debug": fingerprint({ name: "debug" }),
    activeDeadlineSeconds: fingerprint(60),
  });
  expect(fingerprints({})).toEqual({});
});
