import { beforeEach, describe, expect, test } from "vitest";
import type { KubeObject, Namespace, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../client.ts";
import { connection, type RecordedSession, recordedSession } from "../session.ts";

let pods: Stored<Pod>[];
let findNamespace: (name: string) => Stored<Namespace> | undefined;
let session: RecordedSession;
beforeEach(() => {
  findNamespace = (name) => ({ metadata: { name, uid: name, resourceVersion: "1" } });
  const client = fakeClient({
    list: async <T extends KubeObject>(resource: { plural: string }, { namespace }: { namespace?: string } = {}) => {
      if (resource.plural !== "pods" || namespace === undefined) {
        throw kubeError("Forbidden", "", { cluster: "host", verb: "list", resource: resource.plural });
      }
      const items = pods.filter(({ metadata }) => metadata.namespace === namespace);
      return { items: items as unknown as Stored<T>[], resourceVersion: "1", size: 0 };
    },
    find: async <T extends KubeObject>(_: unknown, { name }: { name: string }) =>
      findNamespace(name) as unknown as Stored<T> | undefined,
  });
  session = recordedSession({ connect: async () => connection(client, { namespace: "team" }) });
  pods = [
    proxyPod({
      name: "web-1",
      metadata: {
        namespace: "shop",
        annotations: { "legation.dev/cluster": "west", "legation.dev/member-node": "west-node-0" },
      },
      spec: { nodeName: "legation-west", containers: [{ name: "main" }] },
      status: {
        ...runningStatus(),
        containerStatuses: [{ name: "main", ready: true, restartCount: 0, image: "web:1", imageID: "" }],
      },
    }),
    proxyPod({
      name: "web-0",
      metadata: { namespace: "shop" },
      spec: { containers: [{ name: "main" }, { name: "side" }] },
      status: {
        phase: "Pending",
        conditions: [{ type: "PodScheduled", status: "False", reason: "NotPlaced", message: "east: no room" }],
      },
    }),
    pod({ name: "own", metadata: { namespace: "shop" } }),
    proxyPod({ name: "elsewhere", metadata: { namespace: "team" } }),
  ];
});

function run(...args: string[]): Promise<number> {
  return runProgram(["status", ...args], session, "1.2.3");
}

const lines = (): string[] => session.out.join("").trimEnd().split("\n");

describe("the status of a namespace", () => {
  test("shows the pods of that namespace alone, their members, and why one waits", async () => {
    expect(await run("-n", "shop")).toBe(0);
    const [summary, header, first, second, note] = lines();
    expect(summary).toBe("Namespace shop: 2 delegated pods, 1 of them without a member");
    expect(header?.split(/\s+/)).toEqual(["POD", "READY", "STATUS", "CLUSTER", "NODE", "AGE", "WHY"]);
    expect(first).toMatch(/^web-0\s+0\/2\s+Pending\s+-\s+-\s+\S+\s+NotPlaced: east: no room$/);
    expect(second).toMatch(/^web-1\s+1\/1\s+Running\s+west\s+west-node-0\s+\S+$/);
    expect(note).toBe("1 pod is not delegated (see `legation status pod NAME`)");
    expect(lines()).toHaveLength(5);
  });

  test("has the same for scripts", async () => {
    expect(await run("-n", "shop", "-o", "json")).toBe(0);
    expect(JSON.parse(session.out.join(""))).toMatchObject({
      namespace: "shop",
      pods: [
        { name: "web-0", phase: "Pending", waits: { reason: "NotPlaced", message: "east: no room" } },
        { name: "web-1", cluster: "west", memberNode: "west-node-0", containers: { ready: 1, all: 1 } },
      ],
      onHost: 1,
    });
  });

  test("has no table without delegated pods", async () => {
    expect(await run("-n", "empty")).toBe(0);
    expect(lines()).toEqual(["Namespace empty: 0 delegated pods"]);
  });

  test("needs no right to read the namespace itself", async () => {
    findNamespace = () => {
      throw kubeError("Forbidden", "", { cluster: "host", verb: "get", resource: "namespaces" });
    };
    expect(await run("-n", "shop")).toBe(0);
    expect(lines()[0]).toContain("Namespace shop: 2 delegated pods");
  });

  test("names a namespace that the host does not have", async () => {
    findNamespace = () => undefined;
    expect(await run("-n", "shpo")).toBe(1);
    expect(session.err.join("")).toContain("Namespace shpo: is not on the host");
  });
});
