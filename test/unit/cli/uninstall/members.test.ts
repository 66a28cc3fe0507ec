import { expect, test } from "vitest";
import { VIRTUAL_NODE_LABEL } from "../../../../src/api/keys.ts";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import type { Connection } from "../../../../src/cli/shared/session.ts";
import { leaveMembers } from "../../../../src/cli/uninstall/members.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../client.ts";

/** A host that has credentials of these members, each of which is its own name. */
function hostOf(names: readonly string[]): ClusterClient {
  const items = names.map((name) => ({ metadata: { name, labels: { [VIRTUAL_NODE_LABEL]: name } } }));
  return fakeClient({
    list: async () => ({ items, resourceVersion: "1", size: 0 }) as never,
    get: async () => ({ metadata: { uid: "host-1" } }) as never,
    find: async () => ({ data: { kubeconfig: "" } }) as unknown as Stored<KubeObject> as never,
  });
}

/** A member without any of this host's access. */
function memberOf(methods: Partial<ClusterClient>): ClusterClient {
  return fakeClient({
    list: async () => ({ items: [], resourceVersion: "1", size: 0 }) as never,
    find: async () => undefined,
    ...methods,
  });
}

function leave(
  members: Readonly<Record<string, ClusterClient>>,
  remains: (what: string) => void = () => {},
): Promise<void> {
  return leaveMembers([], {
    host: hostOf(Object.keys(members)),
    connectText: async (_, as) => ({ client: members[as] }) as Connection,
    signal: AbortSignal.timeout(10_000),
    report: () => {},
    remains,
  });
}

test("cleans members concurrently, and reports what remains in each", async () => {
  const asked = { west: Promise.withResolvers<void>(), east: Promise.withResolvers<void>() };
  const failing = (cluster: "west" | "east", other: "west" | "east"): ClusterClient =>
    memberOf({
      raw: async () => {
        asked[cluster].resolve();
        await asked[other].promise;
        throw kubeError("AnswerLost", "away", { cluster, verb: "get", resource: "api" });
      },
    });
  const remained: string[] = [];
  const remains = (what: string): void => void remained.push(what);
  await leave({ west: failing("west", "east"), east: failing("east", "west") }, remains);
  expect(remained.toSorted()).toEqual([
    "east: everything: east: get api: away",
    "west: everything: west: get api: away",
  ]);
});

test("reports leftovers as found, though another member's error ends the command", async () => {
  const remained: string[] = [];
  const away = kubeError("AnswerLost", "away", { cluster: "east", verb: "get", resource: "api" });
  const leaving = leave({ west: memberOf({}), east: memberOf({ raw: () => Promise.reject(away) }) }, (what) =>
    remained.push(what),
  );
  await expect(leaving).rejects.toThrow("not expected");
  expect(remained).toEqual(["east: everything: east: get api: away"]);
});

test("rejects with an unexpected error after all members were cleaned", async () => {
  let cleaned = false;
  const away = kubeError("AnswerLost", "away", { cluster: "east", verb: "get", resource: "api" });
  const leaving = leave({
    west: memberOf({}),
    east: memberOf({
      raw: async () => {
        await new Promise((resolve) => setImmediate(resolve));
        cleaned = true;
        throw away;
      },
    }),
  });
  await expect(leaving).rejects.toThrow("not expected");
  expect(cleaned).toBe(true);
});
