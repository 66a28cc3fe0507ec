import { describe, expect, test } from "vitest";
import type { OwnerReference, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { HostGroups } from "../../../../src/controllers/overflow/host-groups.ts";
import { type FindPod, groupOf } from "../../../../src/scheduling/groups.ts";
import { listing } from "../../../support/builders/answers.ts";
import { pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const { signal } = new AbortController();

function owned(uid: string, kind: string, owner: string, phase = "Running"): Stored<Pod> {
  const reference: OwnerReference = { apiVersion: "v1", kind, name: owner, uid: owner, controller: kind !== "Pod" };
  return pod({ uid, name: uid, metadata: { ownerReferences: [reference] }, status: { phase } });
}

const byOwner = (one: Stored<Pod>, find: FindPod): string | undefined =>
  groupOf(one, { groupBy: { by: "owner" } }, find)?.id;

/** Returns groups over these pods on the host's nodes, read in pages that take so long each. */
function hosting(pages: readonly (readonly Stored<Pod>[])[], eachMs = 0) {
  const clock = new FakeClock();
  const asked: (string | undefined)[] = [];
  const host = fakeClient({
    list: async (_resource: object, { continue: token }: { continue?: string }) => {
      asked.push(token);
      await clock.sleep(eachMs);
      const page = Number(token ?? 0);
      return { items: pages[page] ?? [], ...(page + 1 < pages.length ? { continue: String(page + 1) } : {}) };
    },
  });
  return { clock, asked, groups: new HostGroups({ host, clock, groupOf: byOwner }) };
}

describe("the groups on the host's nodes", () => {
  test("are read in pages, once for all pods of a namespace that are due together", async () => {
    const { clock, asked, groups } = hosting([[owned("a", "Job", "sum")], [owned("b", "Job", "other")]]);
    const reads = ["team", "team", "team"].map((namespace) => groups.read(namespace, signal));
    await clock.advance(0);
    await clock.advance(0);
    await Promise.all(reads);
    expect(asked).toEqual([undefined, "1"]);
    expect(["sum", "other", "none"].map((id) => groups.has("team", `team/owner/${id}`))).toEqual([true, true, false]);
  });

  test("stay known for a while from the end of the read, however long that took", async () => {
    const { clock, groups } = hosting([[owned("a", "Job", "sum")]], 8000);
    const read = groups.read("team", signal);
    await clock.advance(8000);
    await read;
    expect(groups.has("team", "team/owner/sum")).toBe(true);
    await clock.advance(3001);
    expect(groups.has("team", "team/owner/sum")).toBeUndefined();
    expect(groups.pod("team", "a")).toBeUndefined();
  });

  test("are read again after a failure", async () => {
    let failures = 1;
    const host = fakeClient({
      list: listing(() => {
        if (failures-- > 0) throw new Error("away");
        return [];
      }),
    });
    const groups = new HostGroups({ host, clock: new FakeClock(), groupOf: byOwner });
    await expect(groups.read("team", signal)).rejects.toThrow("away");
    await groups.read("team", signal);
    expect(groups.has("team", "team/owner/sum")).toBe(false);
  });

  test("include pods by their owners' owners, as far as these are known", async () => {
    const driver = owned("driver", "Pod", "submitter");
    const failed = owned("submitter", "Job", "sum", "Failed");
    const { clock, groups } = hosting([[driver, failed]]);
    const read = groups.read("team", signal);
    await clock.advance(0);
    await read;
    const executor = byOwner(owned("executor", "Pod", "driver"), (uid) => groups.pod("team", uid));
    expect(executor).toBe("team/owner/sum");
    expect(groups.has("team", executor ?? "")).toBe(true);
  });

  test("are not held by failed pods", async () => {
    const { clock, groups } = hosting([[owned("a", "Job", "sum", "Failed")]]);
    const read = groups.read("team", signal);
    await clock.advance(0);
    await read;
    expect(groups.has("team", "team/owner/sum")).toBe(false);
  });
});
