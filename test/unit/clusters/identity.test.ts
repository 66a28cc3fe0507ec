import { beforeEach, describe, expect, test } from "vitest";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { JoinedIdentity } from "../../../src/clusters/identity.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { answerOf } from "../../support/builders/answers.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { ChangingMember, cluster, delegate, failed, KEY, type Server } from "./changing-member.ts";

/** The member is away for a while; then `next` is at its address. */
async function outage(next: Partial<Server>): Promise<void> {
  west.server.up = false;
  for (const { reject } of west.watches.splice(0)) reject(failed("AnswerLost"));
  await west.clock.advance(90_000);
  west.server = { ...west.server, ...next, up: true };
  await west.clock.advance(30_000);
}

let west: ChangingMember;
beforeEach(() => {
  west = new ChangingMember();
});

test("keeps its delegates, is unreachable, and names the remedy when another cluster answers", async () => {
  const member = await west.started("uid-of-west");
  expect([member.reachable, member.delegates.size]).toEqual([true, 1]);
  west.told = [];
  await outage({ uid: "uid-of-other", items: [] });
  expect(member.probed).toMatchObject({ reachable: true });
  expect([member.reachable, member.syncing, member.delegates.size, west.told]).toEqual([false, false, 1, []]);
  expect(member.unreadable.pods).toBe(
    "another cluster answers: its namespace kube-system has uid uid-of-other, that of the member has uid-of-west; correct the " +
      "server and credentials in Secret legation-system/member-west, or, when the member was built anew and none of its pods runs " +
      "any more, run `kubectl annotate --overwrite clusters.legation.dev west legation.dev/member-uid=uid-of-other`",
  );
  expect(member.candidate().closed?.message).toContain("another cluster answers");
  await outage({ uid: "uid-of-west", items: [delegate] });
  expect([member.reachable, member.unreadable, member.delegates.size, west.told]).toEqual([true, {}, 1, []]);
  await member.stop();
});

test("accepts a rebuilt member once its Cluster records the uid, without its earlier pods", async () => {
  const member = await west.started("uid-of-west");
  await outage({ uid: "uid-of-other", items: [] });
  expect(member.delegates.size).toBe(1);
  member.cluster = cluster("uid-of-other");
  await west.clock.advance(15_000);
  expect([member.reachable, member.delegates.size]).toEqual([true, 0]);
  await member.stop();
});

test("reads nothing from another cluster, nor from one that does not answer the check", async () => {
  west.server = { ...west.server, uid: "uid-of-other", items: [] };
  const other = await west.started("uid-of-west");
  expect([other.reachable, other.read, other.nodesRead, other.syncing]).toEqual([false, false, false, false]);
  await other.stop();
  west.server.uid = "ServerError";
  const silent = await west.started("uid-of-west");
  expect([silent.reachable, silent.read, silent.mistaken]).toEqual([false, false, undefined]);
  await silent.stop();
});

test.each([
  ["whose Cluster records no identity", undefined, 1],
  ["that does not permit reading its identity", "Forbidden", 1],
])("believes a member %s", async (_what, uid, least) => {
  if (uid !== undefined) west.server.uid = "Forbidden";
  const member = await west.started(uid === undefined ? undefined : "uid-of-west");
  await outage({ items: [] });
  expect([member.reachable, member.mistaken, west.told.includes(KEY)]).toEqual([true, undefined, true]);
  expect(Math.min(west.asked, 1)).toBe(least);
  await member.stop();
});

test("does not repeat a forbidden check before each list, but after an outage", async () => {
  west.server.uid = "Forbidden";
  const member = await west.started("uid-of-west");
  await west.clock.advance(20_000);
  for (let round = 0; round < 3; round += 1) {
    for (const { reject } of west.watches.splice(0)) reject(failed("Gone"));
    await west.clock.advance(5_000);
  }
  expect([west.asked, member.reachable]).toEqual([1, true]);
  const lost = failed("AnswerLost");
  member.noteFailure(lost);
  await west.clock.advance(5_000);
  // Told again, it is the same failure.
  member.noteFailure(lost);
  await west.clock.advance(5_000);
  expect(west.asked).toBe(2);
  member.noteFailure(failed("AnswerLost"));
  await west.clock.advance(5_000);
  expect(west.asked).toBe(3);
  await member.stop();
});

test("checks the identity once a minute while all is well", async () => {
  const member = await west.started("uid-of-west");
  expect(west.asked).toBe(1);
  await west.clock.advance(600_000);
  expect(west.asked).toBeLessThanOrEqual(12);
  await member.stop();
});

describe("a request that fails during an identity check", () => {
  /** An identity whose questions are answered one by one. */
  function asking() {
    const answers: PromiseWithResolvers<object>[] = [];
    const identity = new JoinedIdentity({
      client: fakeClient({
        find: async <T extends KubeObject>(_resource: Resource<T>) => {
          const answer = Promise.withResolvers<object>();
          answers.push(answer);
          return answerOf<T>(await answer.promise);
        },
      }),
      cluster: () => cluster("uid-of-west"),
      onFound: () => {},
      clock: west.clock,
      onChange: () => {},
    });
    const answer = async (index: number, uid: string): Promise<void> => {
      answers[index]?.resolve({ metadata: { name: "kube-system", uid } });
      await west.clock.advance(0);
    };
    return { identity, answers, answer };
  }

  test("makes waiting and later callers wait for a new check", async () => {
    const { identity, answers, answer } = asking();
    const lists = [identity.confirm()];
    identity.doubt();
    lists.push(identity.confirm());
    expect(answers).toHaveLength(2);
    await answer(0, "uid-of-west");
    expect(await Promise.race([...lists, "nobody"])).toBe("nobody");
    lists.push(identity.confirm());
    await answer(1, "uid-of-other");
    await Promise.all(lists);
    expect(answers).toHaveLength(2);
    expect(identity.problem).toContain("uid-of-other");
  });

  test("is not decided by a check that began before", async () => {
    const { identity, answers, answer } = asking();
    const list = identity.confirm();
    identity.doubt();
    const later = identity.confirm();
    await answer(1, "uid-of-other");
    await later;
    await answer(0, "uid-of-west");
    await list;
    expect(identity.problem).toContain("uid-of-other");
    expect(answers).toHaveLength(2);
  });

  test("causes at most one more check, however many fail", async () => {
    const { identity, answers, answer } = asking();
    const list = identity.confirm();
    for (const index of [0, 1]) {
      identity.doubt();
      await answer(index, "uid-of-west");
    }
    await list;
    expect(answers).toHaveLength(2);
  });
});

test("counts reachability from the member's return, not from its first response", async () => {
  const member = await west.started("uid-of-west");
  const first = member.reachableSince;
  expect(first).toBeGreaterThan(west.clock.now() - 1_001);
  await west.clock.advance(60_000);
  expect(member.reachableSince).toBe(first);
  await outage({});
  expect(member.reachable).toBe(true);
  expect(member.reachableSince).toBeGreaterThanOrEqual(first + 60_000 + 90_000);
  await member.stop();
});
