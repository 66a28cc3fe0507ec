import { expect, test } from "vitest";
import type { PodSpec } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { withProxyUid } from "../../../src/pods/downward-api.ts";
import type { ApiAccess } from "../../../src/pods/home-api.ts";
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
  const defaultMode = 0o400;
  const items = [
    { path: "uid", ...uid },
    { path: "cpu", resourceFieldRef: { containerName: "main", resource: "limits.cpu" } },
  ];
  const container = { name: "main", image: "main:1", env };
  return {
    containers: [container, { name: "other", image: "other:1" }],
    initContainers: [{ ...container, name: "first" }],
    volumes: [
      { name: "info", downwardAPI: { items, defaultMode } },
      {
        name: "all",
        projected: { sources: [{ downwardAPI: { items } }, { configMap: { name: "app" } }], defaultMode },
      },
      { name: "scratch", emptyDir: {} },
    ],
    nodeSelector: { disk: "ssd" },
    restartPolicy: "Never",
  };
}

test("replaces the pod's uid by its proxy's everywhere, and nothing else", () => {
  expect(withProxyUid(asking(UID))).toEqual(asking(PROXYS));
});

test("adds no init containers and volumes", () => {
  const { containers } = asking(UID);
  expect(Object.keys(withProxyUid({ containers }))).toEqual(["containers"]);
});

test("returns the same spec for a pod that does not read its uid", () => {
  const spec = asking(NAME);
  expect(withProxyUid(spec)).toBe(spec);
});

test("annotates a delegate with the proxy's uid if it uses the host's API", () => {
  const proxy = proxyPod({ spec: asking(UID) });
  const home: ApiAccess = { mode: "host", address: { host: "10.0.0.1", port: "443" } };
  const uidOf = (access: ApiAccess): string | undefined =>
    toDelegate(proxy, host, access).metadata?.annotations?.["legation.dev/proxy-uid"];
  expect([uidOf(home), uidOf({ mode: "none" }), uidOf({ mode: "member" })]).toEqual([
    proxy.metadata.uid,
    undefined,
    undefined,
  ]);
  const plain = toDelegate(proxyPod(), host, home).metadata?.annotations;
  expect(plain).not.toHaveProperty(["legation.dev/proxy-uid"]);
});
