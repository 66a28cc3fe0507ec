import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { at, FINISHED, Following, growing, JOB } from "./following.ts";
import { copyOf, job, LogCluster, runPod } from "./log-cluster.ts";

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
