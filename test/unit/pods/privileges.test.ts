import { expect, test } from "vitest";
import { changedPrivileges } from "../../../src/pods/privileges.ts";

/** Returns a pod's spec with one container of these fields. */
function container(fields: object): object {
  return { containers: [{ name: "main", ...fields }] };
}

test.each<[string, object, string[]]>([
  ["the host's network", { hostNetwork: true }, ["spec.hostNetwork"]],
  ["a hostPath volume", { volumes: [{ name: "root", hostPath: { path: "/" } }] }, ["spec.volumes[root].hostPath"]],
  ["a port of the node", container({ ports: [{ hostPort: 80 }] }), ["spec.containers[0].ports: hostPort 80"]],
  [
    "a probe of another host",
    container({ livenessProbe: { httpGet: { host: "10.0.0.1" } } }),
    ["spec.containers[0].livenessProbe.httpGet.host"],
  ],
  [
    "a hook that calls another host",
    container({ lifecycle: { preStop: { tcpSocket: { host: "db" } } } }),
    ["spec.containers[0].lifecycle.preStop.tcpSocket.host"],
  ],
  ["a security context", container({ securityContext: { privileged: true } }), ["spec.containers[0].securityContext"]],
  [
    "an init container's security context",
    { initContainers: [{ securityContext: {} }] },
    ["spec.initContainers[0].securityContext"],
  ],
])("%s is a privilege that is given", (_, after, expected) => {
  expect(changedPrivileges({}, after)).toEqual(expected);
});

test.each<[string, object, object]>([
  ["the node's port number zero", {}, container({ ports: [{ hostPort: 0 }] })],
  ["false for the host's network", {}, { hostNetwork: false }],
  ["an empty host of a probe", {}, container({ livenessProbe: { tcpSocket: { host: "" } } })],
  ["a volume that every pod may have", {}, { volumes: [{ name: "settings", configMap: { name: "settings" } }] }],
  ["a privilege that was there before", { hostPID: true }, { hostPID: true }],
  ["a privilege that is taken away", { hostPID: true }, {}],
  [
    "the same security context with its fields in another order",
    { securityContext: { a: 1, b: 2 } },
    { securityContext: { b: 2, a: 1 } },
  ],
  ["null for a security context", {}, { securityContext: null }],
])("%s is no change", (_, before, after) => {
  expect(changedPrivileges(before, after)).toEqual([]);
});

test.each(["hostUsers", "securityContext", "os"])(
  "the loss of spec.%s is a change: its absence may give a privilege",
  (field) => {
    expect(changedPrivileges({ [field]: { name: "windows" } }, {})).toEqual([`spec.${field}`]);
  },
);

test("a second port of the node is a change beside the first", () => {
  const [before, after] = [[{ hostPort: 80 }], [{ hostPort: 80 }, { hostPort: 443 }]].map((ports) =>
    container({ ports }),
  );
  expect(changedPrivileges(before, after)).toEqual(["spec.containers[0].ports: hostPort 443"]);
});

test.each([[null], ["text"], [{ containers: "none", volumes: [null], initContainers: [7] }]])(
  "a patch that leaves %j for a spec gives nothing",
  (spec) => {
    expect(changedPrivileges({}, spec)).toEqual([]);
  },
);
