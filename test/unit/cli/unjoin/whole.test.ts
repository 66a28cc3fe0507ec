import { describe, expect, test } from "vitest";
import type { Job } from "../../../../src/api/kubernetes.ts";
import { emptyMember, type UnjoinOptions, unfinishedWhole, waitForWhole } from "../../../../src/cli/unjoin/drain.ts";
import { jobs, nodes } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const { signal } = new AbortController();
const COMPLETE = { conditions: [{ type: "Complete", status: "True" }] };

function whole(name: string, member: string | undefined, status: object = {}): object {
  const annotations = member === undefined ? {} : { "legation.dev/cluster": member };
  return { metadata: { name, namespace: "team", labels: { "legation.dev/whole": "true" }, annotations }, status };
}

function hostWith(...given: readonly object[]): MemoryCluster {
  const host = new MemoryCluster("host", "host-1");
  for (const job of given) host.put(jobs, job);
  return host;
}

/** A Job whose share in west is complete, while east works on. */
function divided(name: string): object {
  const part = { completions: 1, weight: 1, minReplicas: 0 };
  const annotations = {
    "legation.dev/cluster": "west,east",
    "legation.dev/shares": JSON.stringify({ west: { ...part, status: COMPLETE }, east: part }),
  };
  return { metadata: { name, namespace: "team", labels: { "legation.dev/whole": "true" }, annotations } };
}

test("a share that is complete does not count, and one that is not does", async () => {
  const host = hostWith(divided("sum"));
  expect(await unfinishedWhole(host.client, "west", signal)).toEqual([]);
  expect(await unfinishedWhole(host.client, "east", signal)).toHaveLength(1);
});

test("only unfinished Jobs of the member count", async () => {
  const own = { metadata: { name: "own", namespace: "team", annotations: { "legation.dev/cluster": "west" } } };
  const host = hostWith(
    whole("runs", "west", { active: 1 }),
    whole("done", "west", COMPLETE),
    whole("waits", undefined),
    whole("elsewhere", "east"),
    own,
  );
  const found = await unfinishedWhole(host.client, "west", signal);
  expect(found.map(({ object }) => object.metadata.name)).toEqual(["runs"]);
});

/** Empties `west`, which has whole Jobs and no pod. Resolves to the reported lines. */
async function empty(host: MemoryCluster, options: Partial<UnjoinOptions>): Promise<readonly string[]> {
  const lines: string[] = [];
  await emptyMember(
    { name: "west", drain: false, force: false, timeoutMs: 0, ...options },
    {
      host: host.client,
      member: undefined,
      connectText: () => Promise.reject(new Error("not expected")),
      asController: () => Promise.reject(new Error("not expected")),
      signal,
      report: (line) => lines.push(line),
    },
  );
  return lines;
}

describe("a member with an unfinished whole Job", () => {
  const running = (): MemoryCluster => hostWith(whole("sum", "west", { active: 1 }));

  test("is not emptied, and the Job and its end are named", async () => {
    await expect(empty(running(), {})).rejects.toMatchObject({
      exit: "refused",
      message: expect.stringContaining("1 whole Job runs there: Job team/sum"),
      remedy: expect.stringContaining("if the member leaves before, they end as Failed (ClusterRemoved)"),
    });
  });

  test("is not emptied with --drain when the Job does not finish in time", async () => {
    await expect(empty(running(), { drain: true })).rejects.toMatchObject({
      exit: "notReady",
      message: expect.stringContaining("1 whole Job had not ended after 0 s: Job team/sum"),
    });
  });

  test("is emptied with --force, and the Job and its end are named", async () => {
    expect(await empty(running(), { force: true })).toEqual([
      "host: 1 whole Job ends as Failed (ClusterRemoved): Job team/sum",
    ]);
  });

  test("keeps a node that is not Legation's, and is refused all the same", async () => {
    const host = running();
    host.put(nodes, { metadata: { name: "legation-west" } });
    await expect(empty(host, {})).rejects.toMatchObject({ exit: "refused" });
    expect(host.peek(nodes, { name: "legation-west" })?.spec).toBeUndefined();
  });
});

test("waits until the Jobs have finished, and reports each", async () => {
  const clock = new FakeClock();
  const rounds = [
    [whole("sum", "west"), whole("max", "west")],
    [whole("sum", "west"), whole("max", "west", COMPLETE)],
    [whole("sum", "west", COMPLETE)],
  ];
  const withUids = rounds.map((jobs) =>
    jobs.map((job) => {
      const { metadata, status } = job as Job;
      return { metadata: { ...metadata, uid: metadata?.name }, status };
    }),
  );
  const lines: string[] = [];
  const host = fakeClient({
    list: async () => ({ items: withUids.shift() ?? [], resourceVersion: "1", size: 1 }),
  });
  const report = (line: string): void => void lines.push(line);
  const waited = waitForWhole(host, "west", { timeoutMs: 60_000, signal, report, clock });
  await clock.advance(10_000);
  expect(await waited).toEqual([]);
  expect(lines).toEqual(["Job team/max has finished", "Job team/sum has finished"]);
});
