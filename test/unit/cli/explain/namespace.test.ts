import { beforeEach, describe, expect, test } from "vitest";
import type { AnyObject } from "../../../../src/api/delegated-type.ts";
import type { KubeObject, Namespace, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { pod, proxyPod, runningStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, type RecordedSession, recordedSession } from "../session.ts";

let pods: Stored<Pod>[];
let findNamespace: (name: string) => Stored<Namespace> | undefined;
let session: RecordedSession;
/** Objects beside pods, by resource. */
let others: Readonly<Record<string, readonly Stored<AnyObject>[]>>;
/** Resources that the account may not list. */
let forbidden: readonly string[];
/** The account has rights in one namespace alone. */
let isOfOne: boolean;
beforeEach(() => {
  others = {};
  forbidden = [];
  isOfOne = true;
  findNamespace = (name) => ({ metadata: { name, uid: name, resourceVersion: "1" } });
  const client = fakeClient({
    list: async (resource, { namespace } = {}) => {
      if (forbidden.includes(resource.plural) || (resource.plural === "pods" && namespace === undefined && isOfOne)) {
        throw kubeError("Forbidden", "", { cluster: "host", verb: "list", resource: resource.plural });
      }
      const all: readonly Stored<KubeObject>[] = resource.plural === "pods" ? pods : (others[resource.plural] ?? []);
      const items = all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
      return { items };
    },
    find: async (_resource, { name }) => findNamespace(name),
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
        {
          namespace: "shop",
          name: "web-0",
          status: "Pending",
          waits: { reason: "NotPlaced", message: "east: no room" },
        },
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

  test("has whole Jobs and objects of delegated types, and how far they are", async () => {
    const metadata = { namespace: "shop", uid: "u", resourceVersion: "1", labels: { "legation.dev/whole": "true" } };
    const members = [
      { member: "east", state: "InStep", since: "2026-01-01T00:00:00Z" },
      { member: "west", state: "Refused", since: "2026-01-01T00:00:00Z", message: "quota" },
    ];
    const type = { metadata: { name: "certificates.example.com", uid: "t", resourceVersion: "1" } };
    others = {
      jobs: [
        {
          metadata: { ...metadata, name: "sum", annotations: { "legation.dev/cluster": "west" } },
          spec: { completions: 4, template: {} },
          status: { succeeded: 1, active: 2, startTime: "2026-01-01T00:00:00Z" },
        },
      ],
      delegatedtypes: [
        {
          ...type,
          spec: { group: "example.com", version: "v1", kind: "Certificate", plural: "certificates" },
        },
      ],
      certificates: [
        { metadata: { ...metadata, name: "web", annotations: { "legation.dev/members": JSON.stringify(members) } } },
      ],
    };
    expect(await run("-n", "shop")).toBe(0);
    const text = session.out.join("");
    expect(text).toContain("Namespace shop: 2 delegated pods, 1 of them without a member; 2 whole objects");
    expect(text).toMatch(/^OBJECT +CLUSTERS +STATE$/m);
    expect(text).toMatch(/^job\/sum +west +1 of 4 succeeded, 2 active$/m);
    expect(text).toMatch(/^certificate\/web +east,west +in step in 1, Refused in west$/m);
  });

  test("says what the account may not list", async () => {
    forbidden = ["jobs", "delegatedtypes"];
    expect(await run("-n", "shop")).toBe(0);
    expect(lines().at(-1)).toBe(
      "not shown: jobs.batch, objects of delegated types, which the ClusterRole legation-viewer lets you read",
    );
  });

  test("names types of which the account may list no objects, apart from those that the viewer role shows", async () => {
    const type = { group: "example.com", version: "v1", kind: "Certificate", plural: "certificates" };
    others = {
      delegatedtypes: [{ metadata: { name: "c", uid: "c", resourceVersion: "1" }, spec: type }],
    };
    forbidden = ["jobs", "certificates"];
    expect(await run("-n", "shop")).toBe(0);
    expect(lines().at(-1)).toBe(
      "not shown: jobs.batch, which the ClusterRole legation-viewer lets you read; " +
        "certificates.example.com, which the right to list them lets you read",
    );
    session.out.length = 0;
    expect(await run("-n", "shop", "-o", "json")).toBe(0);
    expect(JSON.parse(session.out.join("")).hidden).toEqual(["jobs.batch", "certificates.example.com"]);
  });

  test("is shown of all namespaces with -A, by namespace", async () => {
    isOfOne = false;
    expect(await run("-A")).toBe(0);
    const [summary, header, ...rows] = lines();
    expect(summary).toMatch(/^All namespaces: \d delegated pods, /);
    expect(header).toMatch(/^NAMESPACE +POD +READY/);
    expect(rows.map((row) => row.split(/\s+/).slice(0, 2).join("/"))).toEqual(
      expect.arrayContaining(["shop/web-0", "shop/web-1", "team/elsewhere"]),
    );
  });

  test("names a namespace that the host does not have", async () => {
    findNamespace = () => undefined;
    expect(await run("-n", "shpo")).toBe(1);
    expect(session.err.join("")).toContain("Namespace shpo: is not on the host");
  });
});
