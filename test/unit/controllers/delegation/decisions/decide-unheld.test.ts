import { expect, test } from "vitest";
import { decide } from "../../../../../src/controllers/delegation/decisions/decide.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { member, memory, world } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");

test.each<[string, string | undefined, string[]]>([
  ["waits for a member that has not been read and may have its delegate", undefined, ["report"]],
  ["is placed at once when it may not go to the member that has not been read", "not named", ["create"]],
])("a proxy of an earlier leader %s", (_, excluded, types) => {
  const west = member("west", { reachable: false, read: false });
  const excludes = ({ name }: { readonly name: string }) => (name === "west" ? excluded : undefined);
  const inherited = world(proxyPod(), [west, member("east")], { memory: memory({ fresh: false }), excludes });
  expect(decide(inherited, now).actions.map(({ type }) => type)).toEqual(types);
});
