import { expect, test } from "vitest";
import { type Job, objectKey, type Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/whole/execute.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import type { JobAction, Observed, Shown } from "../../../../src/whole/jobs/model.ts";
import type { JobShare } from "../../../../src/whole/jobs/shares.ts";
import { JOB_WRITES } from "../../../../src/whole/jobs/writes.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const JOB: Stored<Job> = { metadata: { name: "sum", namespace: "team", uid: "u1", resourceVersion: "7" } };
const SHARES: JobShare[] = [
  { member: "east", part: { completions: 1, weight: 1, minReplicas: 0 }, status: { active: 1 } },
  { member: "west", part: { completions: 2, weight: 2, minReplicas: 0 } },
];

const STATUS_ACTION = { type: "status", object: JOB, shown: { status: { active: 1 }, shares: SHARES } } as const;
const WITHOUT_COPY = member("west", fakeClient({ list: async () => ({ items: [] }) }));

interface Executed {
  readonly patches: Patch[];
  readonly sent: number;
  readonly expectation: Awaited<ReturnType<Executor<Job, readonly JobShare[], Shown>["execute"]>>;
}

/**
 * Carries out an action on a host that answers as given. No member is connected unless `isTaken` is given, and none that `left`.
 * None has a copy.
 */
async function executed(
  action: JobAction,
  answer: () => Promise<object>,
  { isTaken, left }: { readonly isTaken?: boolean; readonly left?: string } = {},
): Promise<Executed> {
  const patches: Patch[] = [];
  let sent = 0;
  const executor = new Executor(JOB_WRITES, {
    host: fakeClient({
      patch: (_resource, _ref, patch) => {
        patches.push(patch);
        return answer();
      },
    }),
    identity: { id: "h", name: "host" },
    registry: { member: (name) => (isTaken === undefined || name === left ? undefined : WITHOUT_COPY) },
    recorder: { record: () => {} },
    guard: new WriteGuard({ clock: new FakeClock() }),
    isTaken: () => Promise.resolve(isTaken === true),
    onStatus: () => {
      sent += 1;
    },
  });
  const { signal } = new AbortController();
  const context = { key: objectKey(JOB.metadata), signal, heardAt: 0, log: createLogger({ level: "silent" }) };
  const expectation = await executor.execute(action, context);
  return { patches, sent, expectation };
}

async function written(answer: () => Promise<object>): Promise<Executed> {
  const done = await executed(STATUS_ACTION, answer);
  const observed: Observed = { object: JOB, places: [] };
  expect(done.expectation?.(observed), "waits for the next version").toBe(false);
  return done;
}

test("writes the status and the record of the shares in one request, for the version that was read", async () => {
  const { patches, sent } = await written(() => Promise.resolve({ metadata: {} }));
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

test.each([
  { what: "whose Cluster was removed is ended without asking anybody", isGone: true, patches: 1 },
  { what: "of a member that was disconnected a moment ago is left alone", isGone: false, patches: 0 },
])("a share $what", async ({ isGone, patches: count }) => {
  const { shown } = STATUS_ACTION;
  const action = { type: "fail", object: JOB, member: "west", isGone, shown } as const;
  const { patches } = await executed(action, () => Promise.resolve({ metadata: {} }));
  expect(patches).toHaveLength(count);
});

test.each([
  { what: "goes to another member that takes it", isTaken: true, patches: 1 },
  { what: "stays where it is, without a write, when the other member refuses it as well", isTaken: false, patches: 0 },
  {
    what: "stays where it is, without a write, when the other member has left",
    isTaken: true,
    left: "west",
    patches: 0,
  },
])("a share that its member refused $what", async ({ patches: count, ...members }) => {
  const action = { type: "record", object: JOB, assignment: SHARES, move: { from: "north", to: "west" } } as const;
  const { patches } = await executed(action, () => Promise.resolve({ metadata: {} }), members);
  expect(patches).toHaveLength(count);
});
