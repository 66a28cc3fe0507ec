import { expect, test } from "vitest";
import { SLOT_LABEL } from "../../../src/api/keys.ts";
import { isInShard, slotOf } from "../../../src/api/shards.ts";
import { shardClient } from "../../../src/clusters/shard-client.ts";
import type { ListOptions, WatchOptions } from "../../../src/kube/client.ts";
import { configMaps, namespaces, pods } from "../../../src/kube/resources.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

const SHARD = { index: 1, count: 2 };
const NAMES = Array.from({ length: 40 }, (_, number) => `team-${number}`);
const OURS = NAMES.filter((namespace) => isInShard(SHARD, namespace));

const objects = [...NAMES, "legation-system", undefined].map((namespace) => ({
  metadata: { name: "one", uid: "1", resourceVersion: "1", ...(namespace === undefined ? {} : { namespace }) },
}));
const asked: (ListOptions | undefined)[] = [];
const watched: WatchOptions[] = [];
const client = shardClient(
  fakeClient({
    list: async (_, options) => {
      asked.push(options);
      return { items: objects, size: 4_200 };
    },
    watch: async function* (_, options) {
      watched.push(options);
      for (const object of objects) yield { type: "ADDED", object, size: 1 };
      yield { type: "BOOKMARK", resourceVersion: "9" };
    },
  }),
  SHARD,
);

test("lists objects of the shard's namespaces, of Legation's own and without a namespace", async () => {
  const { items, size } = await client.list(configMaps);
  expect(items.map(({ metadata }) => metadata.namespace)).toEqual([...OURS, "legation-system", undefined]);
  expect(size).toBeCloseTo((4_200 * (OURS.length + 2)) / objects.length);
});

test("watches them, and passes bookmarks on", async () => {
  const seen: unknown[] = [];
  const signal = new AbortController().signal;
  for await (const event of client.watch(configMaps, { resourceVersion: "1", signal })) {
    seen.push(event.type === "BOOKMARK" ? event.type : event.object.metadata.namespace);
  }
  expect(seen).toEqual([...OURS, "legation-system", undefined, "BOOKMARK"]);
  expect(NAMES.filter((name) => watched.at(-1)?.isWanted?.(name))).toEqual(OURS);
});

test("asks the API server for pods without the slots of other shards", async () => {
  await client.list(pods, { labelSelector: "app=web" });
  const selector = asked.at(-1)?.labelSelector ?? "";
  expect(selector).toMatch(/^app=web,/);
  const others = /notin \(([\d,]+)\)/.exec(selector)?.[1]?.split(",") ?? [];
  expect(selector).toContain(SLOT_LABEL);
  for (const name of NAMES) expect(others.includes(String(slotOf(name)))).toBe(!OURS.includes(name));
});

test("shows everything of one namespace, and of a resource without namespaces", async () => {
  expect((await client.list(pods, { namespace: "team-0" })).items).toHaveLength(objects.length);
  expect((await client.list(namespaces)).items).toHaveLength(objects.length);
  expect(asked.slice(-2)).toEqual([{ namespace: "team-0" }, {}]);
});

test("a single shard costs nothing", () => {
  const whole = fakeClient({});
  expect(shardClient(whole, { index: 0, count: 1 })).toBe(whole);
});
