import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { LinePrinter } from "../../../../src/cli/logs/lines.ts";
import { type LogOptions, podsOfJob, showLogs } from "../../../../src/cli/logs/show.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";
import { realClock } from "../../../../src/runtime/clock.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { copyOf, job, LogCluster, runPod } from "./log-cluster.ts";

const JOB = job({ member: "west" });

async function shown(
  clusters: Readonly<Record<string, LogCluster>>,
  options: Partial<LogOptions> = {},
): Promise<{ readonly out: string; readonly err: readonly string[]; readonly lacking: readonly string[] }> {
  let out = "";
  const err: string[] = [];
  const gaps = new Gaps((line) => err.push(line));
  const printer = new LinePrinter((bytes) => {
    out += bytes.toString();
  });
  const sources = Object.entries(clusters).map(([name, { client }]) => ({ name, client, isHost: false }));
  const { signal } = new AbortController();
  const output = { gaps, printer, clock: realClock, signal };
  await showLogs(await podsOfJob(JOB, sources, output), { all: false, timestamps: false, ...options }, output);
  return { out, err, lacking: gaps.lacking };
}

function member(...pods: readonly Readonly<Parameters<typeof runPod>>[]): LogCluster {
  const cluster = new LogCluster(
    "west",
    copyOf(JOB),
    pods.map((each) => runPod(...each)),
  );
  cluster.onStream = ({ pod }) => Readable.from([Buffer.from(`${pod} says\n`), Buffer.from("no end")]);
  return cluster;
}

describe("logs of a Job", () => {
  test("are as they are when there is one pod", async () => {
    expect(await shown({ west: member(["a1", "ended"]) })).toEqual({ out: "a1 says\nno end", err: [], lacking: [] });
  });

  test("have member and pod before each line when there are several, pod by pod, oldest first", async () => {
    const { out } = await shown({ west: member(["a2", "running"], ["a1", "ended"]), east: member(["b1", "ended"]) });
    expect(out).toBe(
      "[west/a1] a1 says\n[west/a1] no end\n[west/a2] a2 says\n[west/a2] no end\n[east/b1] b1 says\n[east/b1] no end",
    );
  });

  test("are asked for with the user's options", async () => {
    const west = member(["a1", "ended"]);
    await shown({ west }, { tail: 5, sinceMs: 90_500, timestamps: true });
    expect(west.asked.map(({ query }) => query)).toEqual([
      { container: "main", timestamps: "true", tailLines: "5", sinceSeconds: "91" },
    ]);
  });

  test("name container, too, when all are shown", async () => {
    const { out } = await shown({ west: member(["a1", "ended"], ["a2", "ended"]) }, { all: true });
    expect(out).toMatch(/^\[west\/a1\/main\] a1 says\n/);
  });

  test("lack a container that waits, which is told and is no failure", async () => {
    const { out, err, lacking } = await shown({ west: member(["a1", "waiting"], ["a2", "ended"]) });
    expect(out).toBe("[west/a2] a2 says\n[west/a2] no end");
    expect(err).toEqual(["west/a1: container main waits to start: ContainerCreating"]);
    expect(lacking).toEqual([]);
  });

  test("lack a container that the pods do not have", async () => {
    const { err, lacking } = await shown({ west: member(["a1", "ended"]) }, { container: "other" });
    expect(err).toEqual(["west/a1: has no container other; it has main"]);
    expect(lacking).toEqual(["west/a1"]);
  });

  test("lack those of a member that does not answer, and have the others'", async () => {
    const east = member(["b1", "ended"]);
    east.failure = kubeError("NotSent", "connection refused", { cluster: "east", verb: "list", resource: "jobs" });
    const { out, err, lacking } = await shown({ west: member(["a1", "ended"]), east });
    expect(out).toBe("a1 says\nno end");
    expect(err).toEqual(["east: east: list jobs: connection refused"]);
    expect(lacking).toEqual(["east"]);
  });

  test("are not asked for pod by pod of a member that stopped answering", async () => {
    const west = member(...Array.from({ length: 50 }, (_, index) => [`a${index}`, "ended"] as const));
    west.onStream = () => kubeError("NotSent", "connection refused");
    const { err, lacking } = await shown({ west });
    expect(west.asked.length).toBeLessThan(20);
    expect(err[0]).toMatch(
      /^west: does not answer, so the logs of its pods from west\/a0 on are missing: connection refused$/,
    );
    expect(lacking).toEqual(["west"]);
  });

  test("lack what a kubelet refuses, with its words", async () => {
    const west = member(["a1", "ended"], ["a2", "ended"]);
    const text = JSON.stringify({ kind: "Status", message: "the container is gone" });
    west.onStream = ({ pod }) => (pod === "a1" ? { status: 400, text } : Readable.from([Buffer.from("a2\n")]));
    expect(await shown({ west })).toEqual({
      out: "[west/a2] a2\n",
      err: ["west/a1: the container is gone"],
      lacking: ["west/a1"],
    });
  });

  test("are not those of a Job of the same name that is no copy of this one", async () => {
    const stranger = new LogCluster("west", job({ uid: "of another host" }), [runPod("a1", "ended")]);
    const { out, err } = await shown({ west: stranger });
    expect(out).toBe("");
    expect(err[0]).toMatch(/^west: has no copy of this Job\n/);
  });
});
