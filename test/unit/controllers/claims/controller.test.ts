import { describe, expect, onTestFinished, test } from "vitest";
import { CLUSTER_ANNOTATION } from "../../../../src/api/keys.ts";
import { objectKey, type PersistentVolumeClaim, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { ClaimController } from "../../../../src/controllers/claims/controller.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { RestoredHost } from "../../../../src/controllers/restored-host.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import type { Interval } from "../../../../src/runtime/leaderless-intervals.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { writing } from "../../../support/builders/answers.ts";
import { claim, memberClaim } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member, withState } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

type Claim = Stored<PersistentVolumeClaim>;

interface Clusters {
  readonly host: readonly Claim[];
  readonly west?: readonly Claim[];
  readonly east?: readonly Claim[];
  /** The cluster whose claims cannot be listed. */
  readonly unreadable?: "host" | "west";
  readonly leaderless?: readonly Interval[];
  /** The members answer. */
  readonly reachable?: boolean;
  /** Members refuse to create claims. */
  readonly refusing?: boolean;
}

const SECOND_MS = 1_000;
const volumes = ["data", "logs"].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
const forbidden = async (): Promise<never> => {
  throw kubeError("Forbidden", "no", { cluster: "x", verb: "list", resource: "persistentvolumeclaims" });
};

/** Returns a controller that has read these clusters, a pod that mounts `names`, and the writes, such as `host patch data`. */
async function reading(
  { unreadable, leaderless = [], reachable = true, refusing = false, ...has }: Clusters,
  names = ["data"],
) {
  const clock = new FakeClock();
  const writes: string[] = [];
  const woken: string[] = [];
  const clientOf = (cluster: "host" | "west" | "east"): ClusterClient => {
    return quietClient(has[cluster] ?? [], {
      ...(unreadable === cluster ? { list: forbidden } : {}),
      ...writing(({ verb, name }) => {
        writes.push(`${cluster} ${verb} ${name}`);
        return verb === "create" && refusing ? forbidden() : undefined;
      }),
    });
  };
  const members = (["west", "east"] as const).map((name) => member(name, clientOf(name), { reachable }));
  const mounted = volumes.filter(({ name }) => names.includes(name));
  const proxy = proxyPod({ metadata: { namespace: "team" }, spec: { volumes: mounted } });
  const events = new Events<ControllerEvents>();
  events.on("needs", (key) => woken.push(key));
  const proxies = new Store<Pod>();
  proxies.set(proxy);
  const claims = new ClaimController({
    host: clientOf("host"),
    ...surroundings(members, clock),
    restoredHost: new RestoredHost({
      election: { leaderless, confirm: async () => true },
      log: createLogger({ level: "silent" }),
    }),
    events,
    proxies,
  });
  onTestFinished(() => claims.stop());
  claims.onMembers();
  claims.onProxy({ type: "added", object: proxy });
  await clock.advance(SECOND_MS);
  return {
    clock,
    writes,
    woken,
    /** Makes the members answer again. */
    answering: async (): Promise<void> => {
      for (const one of members) claims.onConnection(withState(one, { reachable: true }));
      await clock.advance(0);
    },
    preparation: (member: string): unknown => {
      const needs = claims.needs(proxy);
      return needs?.state === "there" ? needs.in(member) : needs;
    },
    prepare: async (member: string, uid = proxy.metadata.uid): Promise<boolean> => {
      const isThere = claims.prepare(objectKey(proxy.metadata), uid, member);
      await clock.advance(0);
      return isThere;
    },
  };
}

/** Returns the host's claim that is assigned to this member. */
function of(member: string, name = "data"): Claim {
  return claim({ metadata: { name, annotations: { [CLUSTER_ANNOTATION]: member } } });
}

const what = "PersistentVolumeClaim data, which the pod needs,";
const unmarked = memberClaim(claim(), { metadata: { annotations: {} } });
const ending = memberClaim(claim(), {
  metadata: { ...memberClaim(claim()).metadata, deletionTimestamp: "2024-01-01T00:00:00Z" },
});

describe("a pod with a claim", () => {
  test.each<[string, Clusters, unknown]>([
    ["may go to the member of the claim", { host: [of("west")], west: [memberClaim(claim())] }, "prepared"],
    ["may go to a member once the claim is created there", { host: [claim()] }, "unprepared"],
    [
      "may go to a member once the host's claim records that it is there",
      { host: [claim()], west: [memberClaim(claim())], reachable: false },
      "unprepared",
    ],
    [
      "may not go to a member if its claim is in another one",
      { host: [of("east")] },
      { refused: `${what} is in east` },
    ],
    [
      "may not go to a member if another one has the claim without a record",
      { host: [claim()], east: [memberClaim(claim())], reachable: false },
      { refused: `${what} is in east` },
    ],
    [
      "may not go to a member if its claim is in one that has left",
      { host: [of("south")] },
      { refused: `${what} is in south, which has not joined` },
    ],
    [
      "may not go to a member that has an earlier claim of the name",
      { host: [of("west")], west: [memberClaim(claim({ uid: "uid-0" }))], reachable: false },
      { refused: `${what} is made there when an earlier one of that name has gone` },
    ],
    [
      "may go to another member than that of an earlier claim",
      { host: [claim()], east: [memberClaim(claim({ uid: "uid-0" }))], reachable: false },
      "unprepared",
    ],
    [
      "waits while the host's claim is being deleted",
      { host: [claim({ metadata: { deletionTimestamp: "2024-01-01T00:00:00Z" } })] },
      { state: "missing", reason: "FailedScheduling", message: 'persistentvolumeclaim "data" is being deleted' },
    ],
    [
      "may not go to a member with a claim of unknown owner",
      { host: [of("west")], west: [unmarked] },
      { refused: expect.stringContaining("is there without the annotation legation.dev/owner") },
    ],
    [
      "may not go to a member whose claim is being deleted",
      { host: [of("west")], west: [ending] },
      { refused: `${what} is being deleted there` },
    ],
    [
      "may not go to a member whose claims cannot be read",
      { host: [claim()], unreadable: "west" },
      { refused: expect.stringContaining("its PersistentVolumeClaims cannot be read yet") },
    ],
    [
      "waits while the host's claims cannot be read",
      { host: [], unreadable: "host" },
      {
        state: "missing",
        reason: "FailedMount",
        message: expect.stringContaining("persistentvolumeclaims cannot be read on the host"),
      },
    ],
  ])("%s", async (_, clusters, expected) => {
    const { preparation } = await reading(clusters);
    expect(preparation("west")).toEqual(expected);
  });
});

test("wakes a pod that waits for a claim when the host's claims turn out to be unreadable", async () => {
  const { woken } = await reading({ host: [], unreadable: "host" });
  expect(woken).toContain("team/web-0");
});

describe("the chosen member of a pod with claims", () => {
  test("is recorded on the pod's claim before the claim is created there, and no other member is ready meanwhile", async () => {
    const { writes, preparation, prepare } = await reading({ host: [claim()] });
    expect(await prepare("west")).toBe(false);
    expect(writes).toEqual(["host patch data"]);
    expect(preparation("east")).toEqual({ refused: `${what} is in west` });
  });

  test("gets none of the pod's claims while one of them is in another member", async () => {
    const { writes, prepare } = await reading({ host: [claim(), of("east", "logs")], reachable: false }, [
      "data",
      "logs",
    ]);
    expect(await prepare("west")).toBe(false);
    expect(writes).toEqual([]);
  });

  test("gets nothing for an earlier pod of that name", async () => {
    const { writes, prepare } = await reading({ host: [claim()] });
    expect(await prepare("west", "uid-of-before")).toBe(true);
    expect(writes).toEqual([]);
  });
});

describe("the claim of a member", () => {
  test("is created when the member answers again", async () => {
    const { writes, answering } = await reading({ host: [of("west")], reachable: false });
    expect(writes).toEqual([]);
    await answering();
    expect(writes).toEqual(["west create data"]);
  });

  test("is created once the member's claims are known", async () => {
    const { writes } = await reading({ host: [of("west")], unreadable: "west" });
    expect(writes).toEqual([]);
  });
});

test("tries a member that refused a claim again after a minute, and wakes the waiting pod", async () => {
  const { clock, writes, woken, preparation } = await reading({ host: [of("west")], refusing: true });
  const creations = (): string[] => writes.filter((write) => write === "west create data");
  const why = "its API server refused PersistentVolumeClaim data, which the pod needs: no";
  expect(preparation("west")).toEqual({ refused: why });
  // Creates of an earlier leader may still be under way for a minute.
  await clock.advance(70 * SECOND_MS);
  const before = creations().length;
  expect(preparation("west")).toEqual({ refused: why });
  await clock.advance(45 * SECOND_MS);
  expect(creations()).toHaveLength(before);
  woken.length = 0;
  await clock.advance(20 * SECOND_MS);
  expect(creations()).toHaveLength(before + 1);
  expect(woken).toContain("team/web-0");
});

describe("the claim of a member whose source is gone", () => {
  const CREATED = "2023-06-01T12:00:00Z";
  const left = memberClaim(claim({ uid: "uid-0" }));
  const forgotten = { ...left, metadata: { ...left.metadata, creationTimestamp: CREATED } };

  test.each<[string, readonly Interval[], string[]]>([
    ["is deleted", [], ["west delete data"]],
    [
      "is kept if it was created without a leader: the host only lost it in a restore",
      [[Date.parse(CREATED), Date.parse(CREATED) + 1]],
      [],
    ],
  ])("%s", async (_, leaderless, expected) => {
    const { writes } = await reading({ host: [], west: [forgotten], leaderless });
    expect(writes).toEqual(expected);
  });
});
