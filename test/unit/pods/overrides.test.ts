import { describe, expect, test } from "vitest";
import type { PodSpec } from "../../../src/api/kubernetes.ts";
import { parseOverrides } from "../../../src/api/overrides.ts";
import { overrideSpec, privilegeProblems } from "../../../src/pods/overrides.ts";

const west = { name: "west", labels: { region: "eu" } };
const east = { name: "east", labels: { region: "us" } };
const spec: PodSpec = { containers: [{ name: "main", image: "hub/web:1", env: [{ name: "A", value: "1" }] }] };

function overridden(text: string, member: typeof west | typeof east) {
  const parsed = parseOverrides(text);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return overrideSpec(spec, parsed, member);
}

const image = (value: string): object => ({ op: "replace", path: "/spec/containers/0/image", value });

describe("overrides", () => {
  test("change the spec only in their members, in order", () => {
    const text = JSON.stringify([
      {
        clusters: ["west"],
        patch: [image("mirror/web:1"), { op: "add", path: "/spec/nodeSelector", value: { gpu: "a" } }],
      },
      { clusterSelector: "region in (us)", patch: [image("us/web:1")] },
      { patch: [{ op: "add", path: "/spec/containers/0/env/-", value: { name: "B", value: "2" } }] },
    ]);
    const env = [
      { name: "A", value: "1" },
      { name: "B", value: "2" },
    ];
    const before = structuredClone(spec);
    expect(overridden(text, west)).toEqual({
      spec: { containers: [{ name: "main", image: "mirror/web:1", env }], nodeSelector: { gpu: "a" } },
    });
    expect(overridden(text, east)).toEqual({ spec: { containers: [{ name: "main", image: "us/web:1", env }] } });
    expect(spec).toEqual(before);
  });

  test("keep numbers beyond JavaScript's range", () => {
    const forever = JSON.rawJSON("9223372036854775807") as unknown as number;
    const parsed = parseOverrides(JSON.stringify([{ patch: [image("mirror/web:1")] }]));
    if ("problem" in parsed) throw new Error(parsed.problem);
    const changed = overrideSpec({ ...spec, terminationGracePeriodSeconds: forever }, parsed, west);
    expect(JSON.stringify(changed)).toContain('"terminationGracePeriodSeconds":9223372036854775807');
  });

  test("with null remove the field, also if there is none", () => {
    const nothing = (path: string): object => ({ op: "add", path, value: null });
    const patch = [nothing("/spec/topologySpreadConstraints"), nothing("/spec/containers/0/env")];
    expect(overridden(JSON.stringify([{ patch }]), west)).toEqual({
      spec: { containers: [{ name: "main", image: "hub/web:1" }] },
    });
  });

  test.each<[string, unknown, string]>([
    ["/spec/topologySpreadConstraints", [null], "spec.topologySpreadConstraints.0: "],
    ["/spec/topologySpreadConstraints", {}, "spec.topologySpreadConstraints: "],
    ["/spec/nodeSelector", "west", "spec.nodeSelector: "],
    ["/spec/volumes", "none", "spec.volumes: "],
    [
      "/spec/affinity",
      { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [null] } } },
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0: ",
    ],
    [
      "/spec/affinity",
      { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: null }] } },
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.0.preference: ",
    ],
  ])("that make an invalid pod of %s, %j, do not fit", (path, value, field) => {
    const result = overridden(JSON.stringify([{ patch: [{ op: "add", path, value }] }]), west);
    expect(result).toEqual({ problem: expect.stringContaining(`makes what is no pod's spec: ${field}`) });
  });

  test("return the same spec for other members", () => {
    expect(overridden('[{"clusters": ["west"], "patch": [{"op": "remove", "path": "/spec/hostname"}]}]', east)).toEqual(
      {
        spec,
      },
    );
  });

  test.each<[object, string]>([
    [{ op: "remove", path: "/spec/hostname" }, "[0].patch[0]: remove /spec/hostname: the pod has nothing there"],
    [
      { op: "test", path: "/spec/containers/0/image", value: "x" },
      "[0].patch[0]: test /spec/containers/0/image: the pod has another value there",
    ],
    [{ op: "add", path: "/spec/containers/3/image", value: "x" }, "[0].patch[0]: add /spec/containers/3/image: "],
    [
      { op: "copy", from: "/spec/containers/1/image", path: "/spec/containers/0/image" },
      "[0].patch[0]: copy /spec/containers/0/image from /spec/containers/1/image: ",
    ],
  ])("that do not fit name the operation: %j", (operation, problem) => {
    expect(overridden(JSON.stringify([{ patch: [operation] }]), west)).toEqual({
      problem: expect.stringContaining(problem) as string,
    });
  });
});

describe("privileges that the host's admission judged", () => {
  const judged = {
    containers: [
      {
        name: "main",
        image: "hub/web:1",
        securityContext: { runAsNonRoot: true },
        ports: [{ containerPort: 80, hostPort: 80 }],
        readinessProbe: { httpGet: { port: 80 } },
      },
    ],
    hostUsers: false,
    hostPID: true,
    volumes: [{ name: "dev", hostPath: { path: "/dev" } }],
  } as unknown as PodSpec;
  const add = (path: string, value: unknown): object => ({ op: "add", path: `/spec/${path}`, value });

  test.each<[string, object]>([
    ["spec.hostNetwork", add("hostNetwork", true)],
    ["spec.hostUsers", { op: "remove", path: "/spec/hostUsers" }],
    ["spec.securityContext", add("securityContext", { runAsUser: 0 })],
    ["spec.os", add("os", { name: "windows" })],
    ["spec.containers[0].securityContext", add("containers/0/securityContext/privileged", true)],
    ["spec.containers[0].securityContext", { op: "remove", path: "/spec/containers/0/securityContext/runAsNonRoot" }],
    ["spec.containers[0].securityContext", { op: "remove", path: "/spec/containers/0/securityContext" }],
    ["spec.containers[0].ports: hostPort 22", add("containers/0/ports", [{ containerPort: 80, hostPort: 22 }])],
    [
      "spec.containers[0].readinessProbe.httpGet.host",
      { op: "copy", from: "/spec/containers/0/image", path: "/spec/containers/0/readinessProbe/httpGet/host" },
    ],
    [
      "spec.containers[0].lifecycle.preStop.tcpSocket.host",
      add("containers/0/lifecycle", { preStop: { tcpSocket: { host: "10.0.0.1", port: 1 } } }),
    ],
    ["spec.volumes[root].hostPath", add("volumes/-", { name: "root", hostPath: { path: "/" } })],
    ["spec.volumes[dev].hostPath", { op: "replace", path: "/spec/volumes/0/hostPath/path", value: "/" }],
    ["spec.volumes[share].nfs", add("volumes", [{ name: "share", nfs: { server: "a", path: "/" } }])],
  ])("cannot be changed by an author: %s", (path, operation) => {
    const text = JSON.stringify([{ clusters: ["east"], patch: [add("hostname", "a")] }, { patch: [operation] }]);
    const parsed = parseOverrides(text);
    if ("problem" in parsed) throw new Error(parsed.problem);
    const problem = `[1].patch: changes ${path}, which this cluster's admission judges in the pod as it is written; `;
    expect(overrideSpec(judged, parsed, west)).toEqual({ problem: expect.stringContaining(problem) as string });
    expect(privilegeProblems(judged, parsed)).toEqual([expect.stringContaining(problem)]);

    const byNamespace = parsed.map((override) => ({ ...override, by: "namespace" as const }));
    expect(overrideSpec(judged, byNamespace, west)).toHaveProperty("spec");
    expect(privilegeProblems(judged, byNamespace)).toEqual([]);
  });

  test.each<[string, object]>([
    ["fewer of them", { op: "remove", path: "/spec/hostPID" }],
    ["none, in words", { op: "replace", path: "/spec/hostPID", value: false }],
    ["port 0 of the node", { op: "replace", path: "/spec/containers/0/ports/0/hostPort", value: 0 }],
    ["a port before that of the node", add("containers/0/ports/0", { containerPort: 9090 })],
    ["a probe of the pod itself", add("containers/0/readinessProbe/httpGet/host", "")],
    ["a volume less", { op: "remove", path: "/spec/volumes/0" }],
    ["a volume of its own", add("volumes/-", { name: "scratch", emptyDir: {} })],
    ["no port of the node", { op: "remove", path: "/spec/containers/0/ports/0/hostPort" }],
    ["another path of its probe", add("containers/0/readinessProbe/httpGet/path", "/ready")],
  ])("do not include an author's change: %s", (_, operation) => {
    const parsed = parseOverrides(JSON.stringify([{ patch: [operation] }]));
    if ("problem" in parsed) throw new Error(parsed.problem);
    expect(overrideSpec(judged, parsed, west)).toHaveProperty("spec");
    expect(privilegeProblems(judged, parsed)).toEqual([]);
  });
});

describe("overrides with a path to prototypes", () => {
  const paths = [
    "/spec/__proto__/polluted",
    "/spec/containers/0/__proto__/polluted",
    "/spec/a/constructor/prototype/x",
  ];

  test.each(paths)("change nothing if applied: %s", (path) => {
    const made = overrideSpec(spec, [{ patch: [{ op: "add", path, value: "yes" }] }], west);
    expect(made).toHaveProperty("problem");
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(Reflect.get({}, "polluted")).toBeUndefined();
  });
});
