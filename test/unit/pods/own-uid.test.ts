import { expect, test } from "vitest";
import type { PodSpec } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import type { ApiAccess } from "../../../src/pods/home-api.ts";
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

test("a pod that asks for its own uid gets its proxy's, everywhere, and all else as before", () => {
  expect(withProxyUid(asking(UID))).toEqual(asking(PROXYS));
});

test("a pod without init containers and volumes gets none", () => {
  const { containers } = asking(UID);
  expect(Object.keys(withProxyUid({ containers }))).toEqual(["containers"]);
});

test("a pod that does not ask is not copied", () => {
  const spec = asking(NAME);
  expect(withProxyUid(spec)).toBe(spec);
});

test("a delegate that asks is annotated with that uid where it uses the host's API", () => {
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
