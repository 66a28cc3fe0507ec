import { expect, test } from "vitest";
import { type Job, objectKey, type Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/whole-jobs/execute.ts";
import type { Observed } from "../../../../src/controllers/whole-jobs/model.ts";
import type { JobShare } from "../../../../src/copies/job-shares.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { fakeClient } from "../../cli/client.ts";

const JOB: Stored<Job> = { metadata: { name: "sum", namespace: "team", uid: "u1", resourceVersion: "7" } };
const SHARES: JobShare[] = [
  { member: "east", part: { completions: 1, weight: 1, minReplicas: 0 }, status: { active: 1 } },
  { member: "west", part: { completions: 2, weight: 2, minReplicas: 0 } },
];

/** Writes a status to a host that answers as given. */
async function written(answer: () => Promise<never>): Promise<{ readonly patches: Patch[]; readonly sent: number }> {
  const patches: Patch[] = [];
  let sent = 0;
  const executor = new Executor({
    host: fakeClient({
      patch: (_resource, _ref, patch) => {
        patches.push(patch);
        return answer();
      },
    }),
    identity: { id: "h", name: "host" },
    registry: { member: () => undefined },
    recorder: { record: () => {} },
    guard: new WriteGuard({ clock: new FakeClock() }),
    onStatus: () => {
      sent += 1;
    },
    onWaiting: () => {},
  });
  const { signal } = new AbortController();
  const context = { key: objectKey(JOB.metadata), signal, heardAt: 0, log: createLogger({ level: "silent" }) };
  const action = { type: "status", job: JOB, shown: { status: { active: 1 }, shares: SHARES } } as const;
  const expectation = await executor.execute(action, context);
  const observed: Observed = { job: JOB, places: [] };
  expect(expectation?.(observed), "waits for the next version").toBe(false);
  return { patches, sent };
}

test("writes the status and the record of the shares in one request, for the version that was read", async () => {
  const { patches, sent } = await written(() => Promise.resolve({ metadata: {} } as never));
  expect(sent).toBe(1);
  expect(patches).toEqual([
    {
      type: "json",
      body: [
        { op: "test", path: "/metadata/uid", value: "u1" },
        { op: "add", path: "/status", value: { active: 1 } },
        { op: "add", path: "/metadata/resourceVersion", value: "7" },
        {
          op: "add",
          path: "/metadata/annotations/legation.dev~1shares",
          value: expect.stringMatching(/^\{"east":.*"status":\{"active":1\}\},"west":/),
        },
      ],
    },
  ]);
});

test("does not count a status that met a conflict as sent, so that the next one is not late", async () => {
  const { sent } = await written(() => Promise.reject(kubeError("Conflict", "the object has been modified")));
  expect(sent).toBe(0);
});
