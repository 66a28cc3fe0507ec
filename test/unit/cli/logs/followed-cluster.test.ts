import { PassThrough, Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { at, FINISHED, Following, growing, JOB } from "./following.ts";
import { copyOf, job, LogCluster, runPod } from "./log-cluster.ts";

describe("following the logs of a Job", () => {
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

  test("goes on with a log that did not grow for a moment", async () => {
    const host = new LogCluster("host", JOB);
    const west = new LogCluster("west", copyOf(JOB), [runPod("a1", "running")]);
    const streams = growing(west);
    const following = new Following(host, JOB, { west });
    await following.pass(1);
    // The pod's node was started again.
    west.change(runPod("a1", "waiting", "2"));
    await following.pass(2);
    west.change(runPod("a1", "running", "3"));
    await following.pass(20);
    streams.a1?.write(at(30, "still here"));
    await following.pass(1);
    expect(following.out).toBe("still here\n");
    following.abort.abort();
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
});
