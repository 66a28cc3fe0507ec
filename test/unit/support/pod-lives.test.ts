import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Cluster } from "../../support/clusters/types.ts";
import { overlaps, type PodLife, podLives } from "../../support/harness/pod-lives.ts";

interface Request {
  readonly verb: string;
  readonly code: number;
  /** Seconds. */
  readonly at: number;
  readonly subresource?: string;
}

function moment(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/** Returns the lives of pod `a`, from requests that take half a second each. */
async function livesAfter(...requests: Request[]): Promise<Omit<PodLife, "cluster" | "name">[]> {
  const directory = mkdtempSync(join(tmpdir(), "legation-lives-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const auditLog = join(directory, "audit.log");
  const lines = requests.map(({ verb, code, at, subresource }) =>
    JSON.stringify({
      stage: "ResponseComplete",
      verb,
      requestURI: "/api/v1/namespaces/apps/pods",
      user: { username: "somebody" },
      objectRef: {
        resource: "pods",
        namespace: "apps",
        name: "a",
        ...(subresource === undefined ? {} : { subresource }),
      },
      responseStatus: { code },
      requestReceivedTimestamp: moment(at),
      stageTimestamp: moment(at + 0.5),
    }),
  );
  writeFileSync(auditLog, `${lines.join("\n")}\n`);
  const lives = await podLives({ name: "west", auditLog } as Cluster, "apps", async () => new Set());
  expect(overlaps(lives)).toEqual([]);
  return lives.map(({ from, until }) => ({ from, ...(until === undefined ? {} : { until }) }));
}

test("begins a life with the response to the creation and ends it with the request that removes the pod", async () => {
  const lives = await livesAfter(
    { verb: "create", code: 201, at: 1 },
    { verb: "patch", code: 200, at: 2, subresource: "status" },
    { verb: "delete", code: 200, at: 3 },
    { verb: "delete", code: 200, at: 4 },
    { verb: "create", code: 201, at: 5 },
  );
  expect(lives).toEqual([{ from: moment(1.5), until: moment(4) }, { from: moment(5.5) }]);
});

test("counts a creation without a response if any other write on the pod follows", async () => {
  const lost = { verb: "create", code: 504, at: 1 };
  expect(await livesAfter(lost)).toEqual([]);
  expect(await livesAfter(lost, { verb: "patch", code: 404, at: 2 })).toEqual([]);
  expect(await livesAfter(lost, { verb: "create", code: 201, at: 2 })).toEqual([{ from: moment(2.5) }]);
  expect(await livesAfter(lost, { verb: "create", code: 201, at: 2, subresource: "binding" })).toEqual([
    { from: moment(2.5) },
  ]);
});

test("never counts a refused creation", async () => {
  const bound = { verb: "create", code: 201, at: 2, subresource: "binding" };
  expect(await livesAfter({ verb: "create", code: 409, at: 1 }, bound)).toEqual([]);
});

test("counts a pod that was created anew without a response as another one", async () => {
  const lives = await livesAfter(
    { verb: "create", code: 201, at: 1 },
    { verb: "delete", code: 200, at: 2 },
    { verb: "create", code: 504, at: 3 },
    { verb: "patch", code: 200, at: 4, subresource: "status" },
  );
  expect(lives).toEqual([{ from: moment(1.5), until: moment(2) }, { from: moment(4.5) }]);
});

test("finds two pods of one name at one moment, whichever was deleted, and in any order", () => {
  const life = (cluster: string, from: number, parts: Partial<PodLife> = {}): PodLife => ({
    cluster,
    name: "a",
    from: moment(from),
    ...parts,
  });
  const stays = life("west", 1, { alive: true });
  const swept = life("east", 2, { until: moment(3) });
  for (const lives of [
    [stays, swept],
    [swept, stays],
  ]) {
    expect(overlaps(lives)).toEqual([[stays, swept]]);
  }
  const ended = life("west", 1, { until: moment(2.5) });
  expect(overlaps([swept, ended])).toEqual([[ended, swept]]);
  expect(overlaps([life("west", 1, { until: moment(2) }), swept])).toEqual([]);
  // The swept pod may have gone with its namespace before the other was created.
  expect(overlaps([life("west", 1), swept])).toEqual([]);
  expect(overlaps([stays, life("east", 2, { name: "b", until: moment(3) })])).toHaveLength(0);
});

test("returns no end for an existing pod", async () => {
  const directory = mkdtempSync(join(tmpdir(), "legation-lives-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const auditLog = join(directory, "audit.log");
  const event = {
    stage: "ResponseComplete",
    verb: "create",
    requestURI: "/api/v1/namespaces/apps/pods",
    user: { username: "somebody" },
    objectRef: { resource: "pods", namespace: "apps", name: "a" },
    responseStatus: { code: 201 },
    requestReceivedTimestamp: moment(1),
    stageTimestamp: moment(1.5),
  };
  writeFileSync(auditLog, `${JSON.stringify(event)}\n`);
  const lives = await podLives({ name: "west", auditLog } as Cluster, "apps", async () => new Set(["a"]));
  expect(lives).toEqual([{ cluster: "west", name: "a", from: moment(1.5), alive: true }]);
});
