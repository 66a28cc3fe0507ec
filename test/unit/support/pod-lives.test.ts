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

/** The lives of pod `a`, from requests that take half a second each. */
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
  const lives = await podLives({ name: "west", auditLog } as Cluster, "apps");
  expect(overlaps(lives)).toEqual([]);
  return lives.map(({ from, until }) => ({ from, ...(until === undefined ? {} : { until }) }));
}

test("a pod lives from the answer to its creation to the request that removes it", async () => {
  const lives = await livesAfter(
    { verb: "create", code: 201, at: 1 },
    { verb: "patch", code: 200, at: 2, subresource: "status" },
    { verb: "delete", code: 200, at: 3 },
    { verb: "delete", code: 200, at: 4 },
    { verb: "create", code: 201, at: 5 },
  );
  expect(lives).toEqual([{ from: moment(1.5), until: moment(4) }, { from: moment(5.5) }]);
});

test("a creation whose caller was gone counts when anything else is written on the pod", async () => {
  const lost = { verb: "create", code: 504, at: 1 };
  expect(await livesAfter(lost)).toEqual([]);
  expect(await livesAfter(lost, { verb: "patch", code: 404, at: 2 })).toEqual([]);
  expect(await livesAfter(lost, { verb: "create", code: 201, at: 2 })).toEqual([{ from: moment(2.5) }]);
  expect(await livesAfter(lost, { verb: "create", code: 201, at: 2, subresource: "binding" })).toEqual([
    { from: moment(2.5) },
  ]);
});

test("one that was refused never counts", async () => {
  const bound = { verb: "create", code: 201, at: 2, subresource: "binding" };
  expect(await livesAfter({ verb: "create", code: 409, at: 1 }, bound)).toEqual([]);
});

test("a pod made anew without an answer is another one", async () => {
  const lives = await livesAfter(
    { verb: "create", code: 201, at: 1 },
    { verb: "delete", code: 200, at: 2 },
    { verb: "create", code: 504, at: 3 },
    { verb: "patch", code: 200, at: 4, subresource: "status" },
  );
  expect(lives).toEqual([{ from: moment(1.5), until: moment(2) }, { from: moment(4.5) }]);
});
