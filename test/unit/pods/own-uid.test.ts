import { expect, test } from "vitest";
import type { PodSpec } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { withProxyUid } from "../../../src/pods/own-uid.ts";
import { proxyPod } from "../../support/builders/pod.ts";

const host = { id: "host-id", name: "cern" };
const UID = { fieldRef: { apiVersion: "v1", fieldPath: "metadata.uid" } };
const NAME = { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } };
const PROXYS = { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['legation.dev/proxy-uid']" } };

/** A pod that asks for its name, and for `uid` in each place where it can. */
function asking(uid: typeof UID): PodSpec {
  const env = [
    { name: "POD_UID", valueFrom: uid },
    { name: "POD_NAME", valueFrom: NAME },
    { name: "MODE", value: "metadata.uid" },
  ];
  const items = [
    { path: "uid", ...uid },
    { path: "cpu", resourceFieldRef: { containerName: "main", resource: "limits.cpu" } },
  ];
  const container = { name: "main", image: "main:1", env };
  return {
    containers: [container, { name: "other", image: "other:1" }],
    initContainers: [{ ...container, name: "first" }],
    volumes: [
      { name: "info", downwardAPI: { items } },
      { name: "all", projected: { sources: [{ downwardAPI: { items } }, { configMap: { name: "app" } }] } },
      { name: "scratch", emptyDir: {} },
    ],
  };
}

test("a pod that asks for its own uid gets its proxy's, everywhere, and all else as before", () => {
  expect(withProxyUid(asking(UID))).toEqual(asking(PROXYS));
});

test("a pod that does not ask is not copied", () => {
  const spec = asking(NAME);
  expect(withProxyUid(spec)).toBe(spec);
});

test("a delegate is annotated with that uid where it asks, unless it uses the member's API", () => {
  const proxy = proxyPod({ spec: asking(UID) });
  const uidOf = (mode: "none" | "member"): string | undefined =>
    toDelegate(proxy, host, { mode }).metadata?.annotations?.["legation.dev/proxy-uid"];
  expect([uidOf("none"), uidOf("member")]).toEqual([proxy.metadata.uid, undefined]);
  const plain = toDelegate(proxyPod(), host, { mode: "none" }).metadata?.annotations;
  expect(plain).not.toHaveProperty(["legation.dev/proxy-uid"]);
});
