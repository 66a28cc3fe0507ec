import { describe, expect, test } from "vitest";
import { CLAIM_STATUS_ANNOTATION } from "../../../../src/api/keys.ts";
import type { PersistentVolumeClaim, Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/claims/execute.ts";
import type { Action } from "../../../../src/controllers/claims/model.ts";
import { RestoredHost } from "../../../../src/controllers/restored-host.ts";
import { claimStatus } from "../../../../src/copies/claims.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { claim, HOST, memberClaim } from "../../../support/builders/claim.ts";
import { fakeClient } from "../../cli/client.ts";
import { noting, type Write } from "../writes.ts";

const log = createLogger({ level: "silent" });

interface Host {
  /** Its claim of that name, as a live read finds it. */
  readonly has?: Stored<PersistentVolumeClaim>;
  /** Whether it still has the Lease as this leader renewed it. */
  readonly confirms?: boolean;
}

function executing({ has, confirms = true }: Host = {}) {
  const writes: Write[] = [];
  const lost: string[] = [];
  const clientOf = (cluster: string) =>
    noting(
      fakeClient({
        cluster,
        list: (async () => ({ items: has === undefined ? [] : [has] })) as never,
        patch: (async () => ({})) as never,
        delete: async () => {},
      }),
      writes,
    );
  const west = { name: "west", client: clientOf("west"), noteFailure: () => {} };
  const executor = new Executor({
    host: clientOf("host"),
    registry: { member: () => west },
    hostId: HOST.id,
    onLost: (_key: string, _uid: string, _member: string, message: string) => lost.push(message),
    guard: new WriteGuard({ clock: { now: () => 0 } }),
    restoredHost: new RestoredHost({ election: { leaderless: [], confirm: async () => confirms }, log }),
    clock: { now: () => 0 },
  } as never);
  const context = { key: "team/data" as never, signal: new AbortController().signal, heardAt: 0, log };
  return { writes, lost, execute: (action: Action) => executor.execute(action, context) };
}

const sweep: Action = { type: "sweep", member: "west", uid: "copy", ownerUid: claim().metadata.uid };

describe("a write to a claim demands that it is", () => {
  const uid = "claim-uid";
  test.each<[string, Action, string, object]>([
    [
      "without a member, as it was when it got one",
      { type: "assign", member: "west", uid, resourceVersion: "3" },
      "host patch",
      { uid, resourceVersion: "3" },
    ],
    [
      "in the member that refused it",
      { type: "unassign", uid, resourceVersion: "3" },
      "host patch",
      { uid, resourceVersion: "3" },
    ],
    ["the one whose status is told", { type: "tell", uid, status: "{}" }, "host patch", { uid }],
    ["the one that grows", { type: "grow", member: "west", uid, size: "2Gi" }, "west patch", { uid }],
    ["the one whose owner is known", { type: "mark", member: "west", uid, annotations: {} }, "west patch", { uid }],
    ["the one whose host's is gone", sweep, "west delete", { uid: "copy" }],
  ])("%s", async (_, action, to, demands) => {
    const { writes, execute } = executing();
    await execute(action);
    expect(writes).toEqual([{ to, demands }]);
  });
});

describe("a member's claim keeps its data", () => {
  test("when the host has its claim: the watch is behind", async () => {
    const { writes, execute } = executing({ has: claim() });
    const shown = await execute(sweep);
    expect(writes).toEqual([]);
    // Looked at again later.
    expect(shown?.({ copies: [] } as never)).toBe(false);
  });

  test("when the host was set back, or another leads", async () => {
    const { writes, execute } = executing({ confirms: false });
    await expect(execute(sweep)).rejects.toMatchObject({ code: "NotSent" });
    expect(writes).toEqual([]);
  });
});

test("a member's claim that is found as it was, though its watch does not show it yet, is not told to be lost", async () => {
  const there = memberClaim(claim());
  const seen = claim({ metadata: { annotations: { [CLAIM_STATUS_ANNOTATION]: claimStatus(there, undefined) } } });
  const { lost, execute } = executing({ has: there });
  const shown = await execute({ type: "confirmLost", member: "west", claim: seen });
  expect(lost).toEqual([]);
  expect(shown?.({ copies: [] } as never)).toBe(false);
  expect(shown?.({ copies: [{ member: "west", claim: there }] } as never)).toBe(true);
});
