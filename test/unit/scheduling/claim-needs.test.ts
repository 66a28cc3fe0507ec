import { expect, test } from "vitest";
import { objectKey, type PersistentVolumeClaim, type Stored } from "../../../src/api/kubernetes.ts";
import type { Preparation } from "../../../src/placement/needs.ts";
import { claimElsewhere, claimKeys, claimNeeds } from "../../../src/scheduling/claim-needs.ts";
import { claim } from "../../support/builders/claim.ts";
import { pod } from "../../support/builders/pod.ts";

const volumes = ["data", "logs"].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
const keys = claimKeys(pod({ spec: { volumes } }));

/** Returns the needs of a pod with both claims, of which the host has these. */
function needs(
  has: readonly Stored<PersistentVolumeClaim>[],
  preparation: (name: string) => Preparation = () => "prepared",
) {
  const claims = new Map(has.map((each) => [objectKey(each.metadata), each]));
  return claimNeeds(
    keys,
    (key) => claims.get(key),
    (_member, { metadata }) => preparation(metadata.name),
  );
}

const data = claim();
const logs = claim({ metadata: { name: "logs" } });

test.each<[string, Stored<PersistentVolumeClaim>[], string]>([
  ["is not there", [data], 'persistentvolumeclaim "logs" not found'],
  [
    "is being deleted",
    [data, claim({ metadata: { name: "logs", deletionTimestamp: "2026-01-01T00:00:00Z" } })],
    'persistentvolumeclaim "logs" is being deleted',
  ],
])("a pod waits in the scheduler's words for a claim that %s", (_, has, message) => {
  expect(needs(has)).toEqual({ state: "missing", reason: "FailedScheduling", message });
});

test.each<[string, Record<string, Preparation>, Preparation]>([
  ["is prepared once each of its claims is", {}, "prepared"],
  ["waits for the last of its claims", { logs: "unprepared" }, "unprepared"],
  [
    "is refused if one claim is, although another one still waits",
    { data: "unprepared", logs: { refused: "no" } },
    { refused: "no" },
  ],
])("a pod in a member %s", (_, preparations, expected) => {
  const found = needs([data, logs], (name) => preparations[name] ?? "prepared");
  expect(found.state === "there" && found.in("west")).toEqual(expected);
});

test("says where a claim is, and whether that member has left", () => {
  expect(claimElsewhere(data, "west", true)).toBe("PersistentVolumeClaim data, which the pod needs, is in west");
  expect(claimElsewhere(data, "west", false)).toMatch(/ is in west, which has not joined$/);
});
