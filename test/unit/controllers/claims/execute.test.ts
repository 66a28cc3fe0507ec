import { describe, expect, test } from "vitest";
import { CLAIM_STATUS_ANNOTATION } from "../../../../src/api/keys.ts";
import { objectKey, type PersistentVolumeClaim, type Stored } from "../../../../src/api/kubernetes.ts";
import { Executor } from "../../../../src/controllers/claims/execute.ts";
import type { Action } from "../../../../src/controllers/claims/model.ts";
import { RestoredHost } from "../../../../src/controllers/restored-host.ts";
import { claimStatus } from "../../../../src/copies/claims.ts";
import { WriteGuard } from "../../../../src/runtime/write-guard.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { listing, writing } from "../../../support/builders/answers.ts";
import { claim, HOST, memberClaim } from "../../../support/builders/claim.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { registryOf } from "../fleet.ts";
import { noting, type Write } from "../writes.ts";
import { NOTHING_ELSE, shownInWest } from "./executor-options.ts";

const log = createLogger({ level: "silent" });

interface Host {
  /** The cluster's claim of that name, as a live read finds it. */
  readonly has?: Stored<PersistentVolumeClaim>;
  /** The Lease is still as this leader renewed it. */
  readonly confirms?: boolean;
}

function executing({ has, confirms = true }: Host = {}) {
  const writes: Write[] = [];
  const lost: string[] = [];
  const clientOf = (cluster: string) =>
    noting(
      fakeClient({
        cluster,
        list: listing(() => (has === undefined ? [] : [has])),
        ...writing(() => undefined),
      }),
      writes,
    );
  const west = member("west", clientOf("west"));
  const executor = new Executor({
    ...NOTHING_ELSE,
    host: clientOf("host"),
    registry: registryOf([west]),
    hostId: HOST.id,
    onRefused: (_key, _write, message) => lost.push(message),
    guard: new WriteGuard({ clock: { now: () => 0 } }),
    restoredHost: new RestoredHost({ election: { leaderless: [], confirm: async () => confirms }, log }),
    clock: { now: () => 0 },
  });
  const context = {
    key: objectKey({ namespace: "team", name: "data" }),
    signal: new AbortController().signal,
    heardAt: 0,
    log,
  };
  return { writes, lost, execute: (action: Action) => executor.execute(action, context) };
}

const sweep: Action = {
  type: "sweep",
  member: "west",
  uid: "copy",
  resourceVersion: "7",
  ownerUid: claim().metadata.uid,
};

describe("the preconditions of a write to a claim", () => {
  const uid = "claim-uid";
  test.each<[string, Action, string, object]>([
    [
      "name the version without a member when it gets one",
      { type: "assign", member: "west", uid, resourceVersion: "3" },
      "host patch",
      { uid, resourceVersion: "3" },
    ],
    [
      "name the version with the member that refused it",
      { type: "unassign", uid, resourceVersion: "3" },
      "host patch",
      { uid, resourceVersion: "3" },
    ],
    ["name the uid when its status is recorded", { type: "tell", uid, status: "{}" }, "host patch", { uid }],
    ["name the uid when it grows", { type: "grow", member: "west", uid, size: "2Gi" }, "west patch", { uid }],
    [
      "name the uid when its owner is restored",
      { type: "mark", member: "west", uid, annotations: {} },
      "west patch",
      { uid },
    ],
    [
      "name the uid and the version when it is deleted with its source",
      sweep,
      "west delete",
      { uid: "copy", resourceVersion: "7" },
    ],
  ])("%s", async (_, action, to, demands) => {
    const { writes, execute } = executing();
    await execute(action);
    expect(writes).toEqual([{ to, demands }]);
  });
});

describe("the claim of a member", () => {
  test("keeps its data when the host has its source, and only the watch is behind", async () => {
    const { writes, execute } = executing({ has: claim() });
    const shown = await execute(sweep);
    expect(writes).toEqual([]);
    // The sweep is repeated later.
    expect(shown?.(shownInWest())).toBe(false);
  });

  test("keeps its data when the host was restored, or another process leads", async () => {
    const { writes, execute } = executing({ confirms: false });
    await expect(execute(sweep)).rejects.toMatchObject({ code: "NotSent" });
    expect(writes).toEqual([]);
  });
});

test("is not reported lost when a read finds it unchanged before its watch shows it", async () => {
  const there = memberClaim(claim());
  const seen = claim({ metadata: { annotations: { [CLAIM_STATUS_ANNOTATION]: claimStatus(there, undefined) } } });
  const { lost, execute } = executing({ has: there });
  const shown = await execute({ type: "confirmLost", member: "west", claim: seen });
  expect(lost).toEqual([]);
  expect(shown?.(shownInWest())).toBe(false);
  expect(shown?.(shownInWest(there))).toBe(true);
});
