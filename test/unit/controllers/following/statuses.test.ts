import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { AnyObject } from "../../../../src/api/delegated-type.ts";
import type { JsonObject } from "../../../../src/api/json.ts";
import { OWNER_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { FollowedStatuses, type FollowedStatusesOptions } from "../../../../src/controllers/following/statuses.ts";
import { followedKind } from "../../../../src/copies/objects.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { podGroupType } from "../../../support/builders/delegated-type.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";

const NAME = { kind: "PodGroup", namespace: "team", name: "gang" };
let clock: FakeClock;
/** Statuses that were written to the host's object. */
let written: unknown[];
let object: Stored<AnyObject>;
let copy: Stored<AnyObject> | undefined;
beforeEach(() => {
  clock = new FakeClock();
  written = [];
  object = { metadata: { namespace: "team", name: "gang", uid: "u", resourceVersion: "1" } };
  copy = copyWith({ phase: "Scheduled" });
});

/** Returns a member's copy of the object with this uid, whose controllers wrote the status. */
function copyWith(status: JsonObject, uid = "u"): Stored<AnyObject> {
  const owner = { cluster: "host", namespace: "team", name: "gang", uid };
  const annotations = { [OWNER_ANNOTATION]: JSON.stringify(owner) };
  return { metadata: { namespace: "team", name: "gang", uid: "c", resourceVersion: "2", annotations }, status };
}

/** Looks at the object once. `rule`: that of its type. */
async function looked(rule?: FollowedStatusesOptions["rules"]["status"]): Promise<FollowedStatuses> {
  const west = member("west");
  const host = fakeClient({
    patch: async (_resource, _ref, { body }) => {
      written.push(body);
      return object;
    },
  });
  const statuses = new FollowedStatuses(
    followedKind(podGroupType, (text) => text),
    {
      ...surroundings([west], clock),
      host,
      proxies: new Store<Pod>(),
      copies: {
        sourceOf: () => ({ state: "present", object }),
        userOf: () => ({ member: west, copy }),
        isNamed: () => true,
      },
      rules: rule === undefined ? {} : { status: rule },
    },
  );
  onTestFinished(() => statuses.stop());
  statuses.enqueue(NAME);
  await clock.advance(10);
  return statuses;
}

test("the host's object gets the status that it has in the member of its pods", async () => {
  await looked();
  expect(JSON.stringify(written)).toContain('"phase":"Scheduled"');
});

test.each<[string, () => void]>([
  ["has that status already", () => (object = { ...object, status: { phase: "Scheduled" } })],
  ["has no copy yet", () => (copy = undefined)],
  ["was made anew, and its copy is that of the one before", () => (copy = copyWith({ phase: "Failed" }, "earlier"))],
])("an object that %s is left as it is", async (_why, given) => {
  given();
  await looked();
  expect(written).toEqual([]);
});

test("a status that changes many times a second is written once a second", async () => {
  const statuses = await looked();
  for (let change = 0; change < 5; change += 1) {
    copy = copyWith({ phase: `Change${change}` });
    statuses.enqueue(NAME);
    await clock.advance(50);
  }
  expect(written).toHaveLength(1);
  await clock.advance(1_000);
  expect(written).toHaveLength(2);
  expect(JSON.stringify(written[1])).toContain("Change4");
});

test("the rule of its type has the last word on a status", async () => {
  await looked((_object, ofCopy) => ({ ...ofCopy, reservedFor: "web" }));
  expect(JSON.stringify(written)).toContain('"reservedFor":"web"');
});
