import { expect, test } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { fakeClient } from "../client.ts";
import { recordedSession } from "../session.ts";
import { copyOf, FakeCluster, job, runPod } from "./fake-cluster.ts";

test.each<[string[], RegExp]>([
  [["pod/web-0"], /"pod\/web-0" is no Job; write e\.g\. job\/sweep\. Logs of a pod: `kubectl logs POD`/],
  [["sweep"], /"sweep" is no Job/],
  [["job/sweep", "--tail", "many"], /--tail: "many" is not a number; write e\.g\. 10/],
  [["job/sweep", "--max-log-requests", "0"], /--max-log-requests: must be 1 or more/],
  [["job/sweep", "-c", "main", "--all-containers"], /--container: contradicts --all-containers/],
])("logs %j is a wrong command line", async (args, message) => {
  const session = recordedSession();
  expect(await runProgram(["logs", ...args], session, "1.0.0")).toBe(2);
  expect(session.err.join("")).toMatch(message);
});

function sessionWith(host: FakeCluster, west: FakeCluster): ReturnType<typeof recordedSession> {
  const connected = { server: "https://it", skipsTlsVerify: false, namespace: "shop" };
  return recordedSession({
    connect: async ({ preferredContext }) => ({
      ...connected,
      client: (preferredContext === "west" ? west : host).client,
    }),
  });
}

test("logs ends with 1 when something is missing, and shows the rest", async () => {
  const placed = job({ member: "west" });
  const west = new FakeCluster("west", copyOf(placed), [runPod("a1", "ended"), runPod("a2", "ended")]);
  west.onStream = ({ pod }) => ({ status: 500, text: `the kubelet of ${pod} is down` });
  const session = sessionWith(new FakeCluster("host", placed), west);
  expect(await runProgram(["logs", "job/sweep", "--member-kubeconfig", "own.yaml"], session, "1.0.0")).toBe(1);
  expect(session.err.join("")).toContain("Job shop/sweep: logs are missing, as told above: west/a1, west/a2");
});

test("logs ends with 3 when no member has the Job", async () => {
  const session = sessionWith(new FakeCluster("host", job()), new FakeCluster("west"));
  expect(await runProgram(["logs", "job/sweep"], session, "1.0.0")).toBe(3);
  expect(session.err.join("")).toContain("Job shop/sweep: no member has it yet");
});

test("logs ends with 1 when the host has no such Job", async () => {
  const session = recordedSession({
    connect: async () => ({
      client: fakeClient({ find: async () => undefined }),
      server: "https://it",
      skipsTlsVerify: false,
      namespace: "shop",
    }),
  });
  expect(await runProgram(["logs", "job/nothing"], session, "1.0.0")).toBe(1);
  expect(session.err.join("")).toContain("Job shop/nothing: is not on the host");
});
