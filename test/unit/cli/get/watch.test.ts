import { afterEach, beforeEach, expect, test } from "vitest";
import type { ClusterPage } from "../../../../src/cli/get/printers.ts";
import { ClusterWatch } from "../../../../src/cli/get/watch.ts";
import { startReading } from "../../../../src/cli/multicluster/lists.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";
import type { TableEvent } from "../../../../src/kube/tables.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { FakeMember } from "./fake-members.ts";
import { podPage } from "./pages.ts";

const REQUEST = {
  queries: [{ word: "pods", names: [] }],
  namespace: "shop",
  includeObject: "Metadata",
  timeoutMs: 10_000,
} as const;

// A watch that lasted this long is begun anew at once.
const HEALTHY_MS = 5_000;

let west: FakeMember;
let clock: FakeClock;
let printed: string[];
let told: string[];
let stop: AbortController;
let watch: ClusterWatch;
let ended: Promise<void>;
beforeEach(async () => {
  west = new FakeMember("west");
  west.pages = [["shop/a/1", "shop/b/1"]];
  clock = new FakeClock();
  printed = [];
  told = [];
  stop = new AbortController();
  const { signal } = stop;
  const gaps = new Gaps((line) => told.push(line));
  const printer = {
    begin: () => undefined,
    print: ({ page, event = "ADDED" }: ClusterPage) => {
      for (const { cells } of page.rows) printed.push(`${event} ${cells.slice(0, 2).join(" ")}`);
    },
    end: () => undefined,
  };
  const cluster = { name: "west", client: west.client };
  watch = new ClusterWatch(cluster, REQUEST, { printer, gaps, clock, signal, mark: (line) => told.push(line) });
  const { lists } = await startReading(cluster, REQUEST, { gaps, signal });
  for (const list of lists) watch.note(list, list.first);
});
afterEach(async () => {
  stop.abort(new Error("stopped"));
  await ended.catch(() => undefined);
});

async function run(): Promise<void> {
  ended = watch.run(undefined);
  ended.catch(() => undefined);
  await clock.advance(0);
}

function event(type: "ADDED" | "MODIFIED" | "DELETED", name: string, version: string): TableEvent {
  return { type, table: podPage([`shop/${name}/${version}`], { columns: [], resourceVersion: version }) };
}

test("pauses when each watch is cut at once, although the cluster answers lists", async () => {
  await run();
  for (let cuts = 0; cuts < 50; cuts += 1) {
    west.watching?.end("AnswerLost");
    await clock.advance(100);
  }
  expect(west.lists.length).toBeGreaterThan(2);
  expect(west.lists.length).toBeLessThan(10);
  expect(told).toEqual([]);
});

test("prints each change of a watched list with its type", async () => {
  await run();
  west.watching?.tell(event("ADDED", "c", "11"));
  west.watching?.tell(event("DELETED", "a", "12"));
  await clock.advance(0);
  expect(printed).toEqual(["ADDED c Running", "DELETED a Running"]);
  expect(told).toEqual([]);
});

test("watches on without a word when the server ends the watch", async () => {
  await run();
  const { watching } = west;
  await clock.advance(HEALTHY_MS);
  watching?.end();
  await clock.advance(0);
  expect(west.watching).not.toBe(watching);
  expect(west.lists).toHaveLength(1);
  expect(told).toEqual([]);
});

test("lists again after a cut, and prints what changed meanwhile once", async () => {
  await run();
  await clock.advance(HEALTHY_MS);
  west.pages = [["shop/b/2", "shop/c/13"]];
  west.watching?.end("AnswerLost");
  await clock.advance(0);
  expect(printed).toEqual(["MODIFIED b Running", "ADDED c Running", "DELETED a <deleted>"]);
  expect(told).toEqual([]);
});

test("prints the end of an object before its successor of the same name", async () => {
  await run();
  await clock.advance(HEALTHY_MS);
  west.pages = [["shop/a/20/another", "shop/b/1"]];
  west.watching?.end("AnswerLost");
  await clock.advance(0);
  expect(printed).toEqual(["DELETED a <deleted>", "ADDED a Running"]);
});

test("says when the cluster is lost, and when it is back", async () => {
  await run();
  west.failure = "ServerError";
  west.watching?.end("AnswerLost");
  await clock.advance(60_000);
  const lost = "west: lost; its rows may be out of date: ServerError it said";
  expect(told).toEqual([lost]);
  west.failure = undefined;
  await clock.advance(30_000);
  expect(told).toEqual([lost, "west: back"]);
  expect(printed).toEqual([]);
});

test("ends a watch whose cluster does not answer, though the connection is open", async () => {
  await run();
  west.failure = "ServerError";
  await clock.advance(5_000);
  expect(told).toEqual(["west: lost; its rows may be out of date: ServerError it said"]);
});

test("lists again without a word when the version has expired", async () => {
  await run();
  await clock.advance(HEALTHY_MS);
  west.pages = [["shop/a/1", "shop/b/1", "shop/d/14"]];
  west.watching?.end("Gone");
  await clock.advance(0);
  expect(printed).toEqual(["ADDED d Running"]);
  expect(told).toEqual([]);
});

test("gives up a cluster that refuses", async () => {
  await run();
  await clock.advance(HEALTHY_MS);
  west.failure = "Forbidden";
  west.watching?.end("AnswerLost");
  await clock.advance(0);
  await ended;
  expect(told).toEqual(["west: is watched no longer: Forbidden it said"]);
});
