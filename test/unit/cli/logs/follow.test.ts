import { PassThrough, Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { type FollowLogsOptions, followLogs } from "../../../../src/cli/logs/follow.ts";
import { LinePrinter } from "../../../../src/cli/logs/lines.ts";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { copyOf, job, LogCluster, runPod } from "./log-cluster.ts";

const at = (second: number, text: string): Buffer =>
  Buffer.from(`2026-01-01T00:00:${String(second).padStart(2, "0")}.000000000Z ${text}\n`);

/** A `legation logs -f` that runs. */
class Following {
  out = "";
  readonly err: string[] = [];
  readonly clock = new FakeClock();
  readonly gaps = new Gaps((line) => this.err.push(line));
  readonly abort = new AbortController();
  readonly ended: Promise<void>;
  isOver = false;

  constructor(
    host: LogCluster,
    of: ReturnType<typeof job>,
    members: Readonly<Record<string, LogCluster>>,
    options: Partial<FollowLogsOptions> = {},
  ) {
    const printer = new LinePrinter((bytes) => {
      this.out += bytes.toString();
    });
    this.ended = followLogs(
      of,
      { all: false, timestamps: false, maxStreams: 10, ...options },
      {
        gaps: this.gaps,
        printer,
        signal: this.abort.signal,
        clock: this.clock,
        host: { name: "host", client: host.client, isHost: true },
        open: async (name) => {
          const member = members[name];
          if (member === undefined)
            throw new Failure("failure", { object: name, problem: "no way in", remedy: "find one" });
          return { name, client: member.client, isHost: false };
        },
      },
    ).finally(() => {
      this.isOver = true;
    });
    this.ended.catch(() => undefined);
  }

  /** Lets seconds pass, each with what happens in it. */
  async pass(seconds: number): Promise<void> {
    for (let step = 0; step < seconds * 2; step += 1) await this.clock.advance(500);
  }
}

const JOB = job({ member: "west" });
const FINISHED = job({ member: "west", finished: true });

/** A log that grows as the test writes, and its end. */
function growing(cluster: LogCluster): Readonly<Record<string, PassThrough>> {
  const streams: Record<string, PassThrough> = {};
  cluster.onStream = ({ pod, query }) => {
    if (query.follow === undefined) return Readable.from([]);
    const stream = new PassThrough();
    streams[pod] = stream;
    return stream;
  };
  return streams;
}

describe("following the logs of a Job", () => {
  test("prints lines as they come, and ends when the Job is finished and its pod's log is read", async () => {
    const host = new LogCluster("host", JOB);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "running")]);
    const streams = growing(west);
    const following = new Following(host, JOB, { west });
    await following.pass(1);
    streams.a1?.write(at(1, "one"));
    await following.pass(1);
    expect(following.out).toBe("one\n");
    west.change(runPod("a1", "ended"));
    streams.a1?.end(at(2, "two"));
    await following.pass(2);
    expect(following.isOver).toBe(false);
    host.change(FINISHED);
    await following.pass(3);
    expect(following.isOver).toBe(true);
    expect(following.out).toBe("one\ntwo\n");
    expect(following.err).toEqual([]);
    expect(west.asked.map(({ query }) => query.sinceTime)).toEqual([undefined, "2026-01-01T00:00:02.000000000Z"]);
  });

  test("follows a pod that starts later, also when the watch ended in between, and then prefixes lines", async () => {
    const host = new LogCluster("host", JOB);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "running")]);
    const streams = growing(west);
    const following = new Following(host, JOB, { west }, { tail: 1 });
    await following.pass(1);
    streams.a1?.write(at(1, "one"));
    await following.pass(1);
    west.endWatches();
    await following.pass(30);
    west.change(runPod("a2", "running"));
    await following.pass(1);
    streams.a2?.write(at(2, "two"));
    await following.pass(1);
    expect(following.out).toBe("one\n[west/a2] two\n");
    expect(west.asked.map(({ query }) => query.tailLines)).toEqual(["1", undefined]);
    following.abort.abort(new Error("Ctrl-C"));
    await expect(following.ended).rejects.toThrow("Ctrl-C");
  });

  test("goes on after a stream was cut, where it was, without losing or repeating a line", async () => {
    const host = new LogCluster("host", JOB);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "running")]);
    const streams = growing(west);
    const following = new Following(host, JOB, { west });
    await following.pass(1);
    streams.a1?.write(Buffer.concat([at(1, "one"), at(2, "two"), at(3, "three").subarray(0, 35)]));
    await following.pass(1);
    streams.a1?.destroy(new Error("reset"));
    await following.pass(2);
    streams.a1?.write(Buffer.concat([at(2, "two"), at(3, "three")]));
    await following.pass(1);
    expect(following.out).toBe("one\ntwo\nthree\n");
    following.abort.abort();
  });

  test("reads the end of a log whose stream does not end", async () => {
    const host = new LogCluster("host", JOB);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "running")]);
    west.onStream = ({ query }) => (query.follow === "true" ? new PassThrough() : Readable.from([at(1, "all of it")]));
    const following = new Following(host, JOB, { west });
    await following.pass(1);
    west.change(runPod("a1", "ended"));
    host.change(FINISHED);
    await following.pass(20);
    expect(following.isOver).toBe(true);
    expect(following.out).toBe("all of it\n");
  });

  test("hardly lists ended pods while it reads a long log of one", async () => {
    const host = new LogCluster("host", FINISHED);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "ended")]);
    const log = new PassThrough();
    west.onStream = () => log;
    const following = new Following(host, FINISHED, { west });
    await following.pass(2);
    const lists = west.podLists;
    for (let second = 1; second < 20; second += 1) {
      log.write(at(second, "more"));
      await following.pass(1);
    }
    expect(west.podLists).toBeLessThanOrEqual(lists + 1);
    log.end();
    await following.pass(2);
    expect(following.isOver).toBe(true);
    expect(following.out.split("\n")).toHaveLength(20);
  });

  test("follows no more containers at a time than it may, and the others afterwards", async () => {
    const several = job({ member: "west", completions: 3 });
    const host = new LogCluster("host", several);
    const west = new LogCluster(
      "west",
      copyOf(several),
      ["a1", "a2", "a3"].map((name) => runPod(name, "running")),
    );
    const streams = growing(west);
    const following = new Following(host, several, { west }, { maxStreams: 2 });
    await following.pass(1);
    expect(Object.keys(streams)).toEqual(["a1", "a2"]);
    expect(following.err).toEqual([expect.stringContaining("--max-log-requests")]);
    west.change(runPod("a1", "ended"));
    streams.a1?.end();
    await following.pass(3);
    expect(Object.keys(streams)).toEqual(["a1", "a2", "a3"]);
    following.abort.abort();
  });

  test("waits for the member of a Job that has none yet", async () => {
    const none = job();
    const host = new LogCluster("host", none);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "ended")]);
    west.onStream = () => Readable.from([at(1, "one")]);
    const following = new Following(host, none, { west });
    await following.pass(1);
    expect(following.err[0]).toMatch(/has no member yet/);
    host.change(FINISHED);
    await following.pass(5);
    expect(following.isOver).toBe(true);
    expect(following.out).toBe("one\n");
  });

  test("names a member that it cannot open, and follows the rest", async () => {
    const host = new LogCluster("host", JOB);
    const following = new Following(host, JOB, {});
    await following.pass(1);
    expect(following.err).toEqual(["west: no way in\n  find one"]);
    host.change(FINISHED);
    await following.pass(5);
    expect(following.isOver).toBe(true);
    expect(following.gaps.lacking).toEqual(["west"]);
  });

  test("ends when the Job is finished and its member does not answer, and says so", async () => {
    const host = new LogCluster("host", JOB);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "running")]);
    growing(west);
    const following = new Following(host, JOB, { west });
    await following.pass(1);
    west.failure = kubeError("NotSent", "connection refused");
    west.onStream = () => kubeError("NotSent", "connection refused");
    west.endWatches();
    host.change(FINISHED);
    await following.pass(60);
    expect(following.isOver).toBe(true);
    expect(following.err.join("\n")).toMatch(/^west does not answer, and is asked again: connection refused/);
    expect(following.gaps.lacking).toContain("west");
  });

  test("ends when the Job is deleted", async () => {
    const host = new LogCluster("host", JOB);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "ended")]);
    west.onStream = () => Readable.from([at(1, "one")]);
    const following = new Following(host, JOB, { west });
    await following.pass(2);
    west.deleteJob();
    host.deleteJob();
    await following.pass(5);
    expect(following.isOver).toBe(true);
    expect(following.out).toBe("one\n");
  });
});
