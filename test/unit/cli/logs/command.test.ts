import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { containerStatus } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, recordedSession } from "../session.ts";
import { copyOf, job, LogCluster, runPod } from "./log-cluster.ts";

test.each<[string[], RegExp]>([
  [["deploy/web"], /"deploy\/web" is no Job or pod; write e\.g\. job\/sweep, web-0, pod\/web-0, or -l app=web/],
  [["No_Pod"], /"No_Pod" is no Job or pod/],
  [["web-0", "--clusters", "west"], /--clusters: is for pod\/NAME and -l/],
  [[], /<target>: is missing; write e\.g\. job\/sweep/],
  [["pod/web-0", "-l", "app=web"], /<target>: contradicts --selector/],
  [["job/sweep", "--clusters", "west"], /--clusters: is for pods/],
  [["job/sweep", "--tail", "many"], /--tail: "many" is not a number; write e\.g\. 10/],
  [["job/sweep", "--max-log-requests", "0"], /--max-log-requests: must be 1 or more/],
  [["job/sweep", "-c", "main", "--all-containers"], /--container: contradicts --all-containers/],
])("logs %j is a wrong command line", async (args, message) => {
  const session = recordedSession();
  expect(await runProgram(["logs", ...args], session, "1.0.0")).toBe(2);
  expect(session.err.join("")).toMatch(message);
});

function sessionWith(host: LogCluster, west: LogCluster): ReturnType<typeof recordedSession> {
  return recordedSession({
    connect: async ({ preferredContext }) =>
      connection((preferredContext === "west" ? west : host).client, { namespace: "shop" }),
  });
}

test("logs ends with 1 when something is missing, and shows the rest", async () => {
  const placed = job({ member: "west" });
  const west = new LogCluster("west", copyOf(placed), [runPod("a1", "ended"), runPod("a2", "ended")]);
  west.onStream = ({ pod }) => ({ status: 500, text: `the kubelet of ${pod} is down` });
  const session = sessionWith(new LogCluster("host", placed), west);
  expect(await runProgram(["logs", "job/sweep", "--member-kubeconfig", "own.yaml"], session, "1.0.0")).toBe(1);
  expect(session.err.join("")).toContain("Job shop/sweep: logs are missing, as told above: west/a1, west/a2");
});

test("names another way into a member that this machine does not reach", async () => {
  const placed = job({ member: "west" });
  const west = new LogCluster("west", copyOf(placed), [runPod("a1", "ended")]);
  west.failure = kubeError("NotSent", "getaddrinfo ENOTFOUND west");
  const session = sessionWith(new LogCluster("host", placed), west);
  expect(await runProgram(["logs", "job/sweep"], session, "1.0.0")).toBe(1);
  expect(session.err.join("")).toContain("give --member-kubeconfig FILE");
});

test("logs ends with 3 when no member has the Job", async () => {
  const session = sessionWith(new LogCluster("host", job()), new LogCluster("west"));
  expect(await runProgram(["logs", "job/sweep"], session, "1.0.0")).toBe(3);
  expect(session.err.join("")).toContain("Job shop/sweep: no member has it yet");
});

test("logs ends with 1 when the host has no such Job", async () => {
  const session = recordedSession({
    connect: async () => connection(fakeClient({ find: async () => undefined }), { namespace: "shop" }),
  });
  expect(await runProgram(["logs", "job/nothing"], session, "1.0.0")).toBe(1);
  expect(session.err.join("")).toContain("Job shop/nothing: is not on the host");
});

describe("logs of a pod of the host", () => {
  const proxy = runPod("web-0", "running");
  const delegate = runPod("web-0", "running");
  proxy.metadata.annotations = { "legation.dev/cluster": "west", "legation.dev/delegate-uid": delegate.metadata.uid };
  proxy.metadata.labels = { "legation.dev/proxy": "true" };
  proxy.spec = { ...proxy.spec, containers: proxy.spec?.containers ?? [], nodeName: "legation-west" };
  delegate.spec?.containers.push({ name: "mesh" });
  const crashed = { waiting: { reason: "CrashLoopBackOff" } };
  const lastState = { terminated: { exitCode: 1 } };
  delegate.status?.containerStatuses?.push(containerStatus({ name: "mesh", state: crashed, lastState }));

  async function shown(
    args: readonly string[],
    ofMember: Stored<Pod> = delegate,
  ): Promise<readonly [number, string, string]> {
    const host = new LogCluster("host", proxy);
    const west = new LogCluster("west", undefined, [ofMember]);
    for (const [cluster, name] of [
      [host, "host"],
      [west, "west"],
    ] as const) {
      cluster.onStream = ({ query }) => Readable.from([Buffer.from(`${name} ${query.container}\n`)]);
    }
    const session = sessionWith(host, west);
    const code = await runProgram(["logs", "web-0", ...args, "--member-kubeconfig", "own.yaml"], session, "1.0.0");
    return [code, session.out.join(""), session.err.join("")];
  }

  test("are the host's for its own containers", async () => {
    expect((await shown([]))[1]).toBe("host main\n");
    expect((await shown(["-c", "main"]))[1]).toBe("host main\n");
  });

  test("are its member's for containers that the member added", async () => {
    expect(await shown(["-c", "mesh"])).toEqual([0, "west mesh\n", ""]);
    expect((await shown(["--all-containers"]))[1]).toBe("west main\nwest mesh\n");
  });

  test("are not another pod's of that name in the member, and name the containers that there are", async () => {
    const other = { ...delegate, metadata: { ...delegate.metadata, uid: "another" } };
    expect((await shown(["-c", "mesh"], other))[2]).toContain("west/web-0: the pod has no delegate there any more");
    const [code, , err] = await shown(["-c", "nothing"]);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("west/web-0: has no container nothing; it has main, mesh"),
    ]);
  });
});

describe("logs of pods", () => {
  const clusters = ["west", "east"];

  function membersWith(...pods: readonly Readonly<Parameters<typeof runPod>>[]): {
    readonly session: ReturnType<typeof recordedSession>;
    readonly members: readonly LogCluster[];
  } {
    const members = clusters.map((name) => {
      const cluster = new LogCluster(
        name,
        undefined,
        pods.map((each) => runPod(...each)),
      );
      cluster.onStream = ({ pod }) => Readable.from([Buffer.from(`2026-01-01T00:00:00.000000000Z ${pod} says\n`)]);
      return cluster;
    });
    const host = fakeClient({ raw: async () => ({}), list: async () => ({ items: [] }) });
    const session = recordedSession({
      connect: async () => connection(host, { namespace: "shop" }),
      openReading: async (_host, member = "") => {
        const found = members[clusters.indexOf(member)];
        if (found === undefined) throw new Error(`this test has no ${member}`);
        return { ...found.client, listTable: neverCalled, watchTable: neverCalled };
      },
    });
    return { session, members };
  }

  function neverCalled(): never {
    throw new Error("logs read no table");
  }

  test("come from all members that are named", async () => {
    const { session } = membersWith(["a1", "ended"]);
    const args = ["logs", "-l", "app=web", "--clusters", "west,east"];
    expect(await runProgram(args, session, "1.0.0")).toBe(0);
    expect(session.out.join("")).toMatch(/^\[east\/a1\] .*a1 says\n\[west\/a1\] .*a1 says\n$/);
  });

  test("are followed until the pods have ended", async () => {
    const { session } = membersWith(["a1", "ended"]);
    expect(await runProgram(["logs", "pod/a1", "--clusters", "west", "-f"], session, "1.0.0")).toBe(0);
    expect(session.out.join("")).toBe("a1 says\n");
  });

  test("end with 1 if no member has such a pod", async () => {
    const { session } = membersWith();
    expect(await runProgram(["logs", "pod/a1", "--clusters", "west,east"], session, "1.0.0")).toBe(1);
    expect(session.err.join("")).toContain("Pod shop/a1: not found in any of these clusters");
  });

  test("of a member that does not answer are missing, and the rest is shown", async () => {
    const { session, members } = membersWith(["a1", "ended"]);
    const [west] = members;
    if (west !== undefined) west.failure = kubeError("ServerError", "it is lost");
    expect(await runProgram(["logs", "pod/a1", "--clusters", "west,east"], session, "1.0.0")).toBe(1);
    expect(session.out.join("")).toContain("a1 says\n");
    expect(session.err.join("")).toContain("logs are missing, as told above: west");
  });
});
