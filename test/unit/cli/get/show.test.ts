import { expect, test } from "vitest";
import { showLists } from "../../../../src/cli/get/show.ts";
import type { ClusterAnswer, StartedList } from "../../../../src/cli/multicluster/lists.ts";
import { Gaps } from "../../../../src/cli/shared/gaps.ts";
import { pods } from "../../../../src/kube/resources.ts";
import type { TablePage } from "../../../../src/kube/tables.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { FakeMember } from "./fake-members.ts";
import { podPage } from "./pages.ts";

/** The answer of a cluster whose list has these pages; an error ends it. */
function answer(cluster: string, ...pages: (TablePage | Error)[]): ClusterAnswer {
  const [first = podPage([])] = pages;
  if (first instanceof Error) throw first;
  const list: StartedList = {
    cluster,
    resource: pods,
    request: { queries: [], namespace: "shop", includeObject: "Metadata", timeoutMs: 1_000 },
    first,
    pages: async function* () {
      for (const page of pages) {
        if (page instanceof Error) throw page;
        yield page;
      }
    },
  };
  return { cluster: { name: cluster, client: new FakeMember(cluster).client }, lists: [list], missing: [] };
}

async function shown(
  answers: readonly Promise<ClusterAnswer>[],
  clock: FakeClock,
): Promise<{ readonly rows: readonly string[]; readonly told: readonly string[]; readonly count: Promise<number> }> {
  const rows: string[] = [];
  const told: string[] = [];
  const count = showLists(answers, {
    printer: {
      begin: () => undefined,
      print: ({ cluster, page }) => {
        for (const { cells } of page.rows) rows.push(`${cluster} ${cells[0]}`);
      },
      end: () => undefined,
    },
    gaps: new Gaps((line) => told.push(line)),
    clock,
    signal: new AbortController().signal,
  });
  await clock.advance(0);
  return { rows, told, count };
}

test("shows clusters that answer late behind the others", async () => {
  const clock = new FakeClock();
  const late = Promise.withResolvers<ClusterAnswer>();
  const west = Promise.resolve(answer("west", podPage(["shop/b"])));
  const { rows, count } = await shown([late.promise, west], clock);
  expect(rows).toEqual([]);
  await clock.advance(2_000);
  expect(rows).toEqual(["west b"]);
  late.resolve(answer("east", podPage(["shop/a"])));
  expect(await count).toBe(2);
  expect(rows).toEqual(["west b", "east a"]);
});

test("shows a late cluster while another one has still not answered", async () => {
  const clock = new FakeClock();
  const [late, later] = [Promise.withResolvers<ClusterAnswer>(), Promise.withResolvers<ClusterAnswer>()];
  const { rows, count } = await shown([late.promise, later.promise], clock);
  await clock.advance(2_000);
  late.resolve(answer("east", podPage(["shop/a"])));
  await clock.advance(2_000);
  expect(rows).toEqual(["east a"]);
  later.resolve(answer("west", podPage(["shop/b"])));
  expect(await count).toBe(2);
});

test("says how much of a list is shown whose pages expired, and goes on with the next cluster", async () => {
  const clock = new FakeClock();
  const east = answer("east", podPage(["shop/a"]), kubeError("Gone", "too old"));
  const west = answer("west", podPage(["shop/b"]));
  const { rows, told, count } = await shown([Promise.resolve(east), Promise.resolve(west)], clock);
  expect(await count).toBe(2);
  expect(rows).toEqual(["east a", "west b"]);
  expect(told).toEqual(["east: pods: only 1 object shown: its pages expired while they were printed; print to a file"]);
});
