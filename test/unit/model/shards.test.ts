import { describe, expect, test } from "vitest";
import { SHARDS_ANNOTATION } from "../../../src/api/keys.ts";
import { isInShard, leaseOf } from "../../../src/api/shards.ts";
import { ShardLeases } from "../../../src/controllers/shard-leases.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

/** A replica's state towards the Lease of a shard. */
type Phase = "none" | "held" | "working" | "stopping";

interface Replica {
  readonly name: string;
  readonly count: number;
  /** By index. */
  readonly phases: readonly Phase[];
}

interface World {
  /** The holder of each Lease by index, with the number of shards that it counts. */
  readonly leases: readonly ({ readonly holder: string; readonly count: number } | undefined)[];
  readonly replicas: readonly Replica[];
}

interface Event {
  readonly what: string;
  readonly world: World;
}

/** Reports whether the holder of that shard may begin, from what the Leases are. */
type MayBegin = (world: World, replica: Replica) => Promise<boolean>;

/** Namespaces of different slots. */
const NAMESPACES = ["a", "b", "c", "d", "e", "f", "g", "h"];

/** As `runWhileLeading` asks: by the Leases' list. */
const mayBegin: MayBegin = async ({ leases }, { count }) => {
  const items = leases.flatMap((lease, index) => {
    if (lease === undefined) return [];
    const annotations = lease.count === 1 ? {} : { [SHARDS_ANNOTATION]: String(lease.count) };
    const metadata = {
      name: leaseOf(index),
      namespace: "legation-system",
      uid: "1",
      resourceVersion: "1",
      annotations,
    };
    return [{ metadata, spec: { holderIdentity: lease.holder, leaseDurationSeconds: 15 } }];
  });
  const client = fakeClient({ list: async () => ({ items }) });
  const board = new ShardLeases({ client, leaseDurationMs: 15_000, clock: new FakeClock() });
  await board.read(new AbortController().signal);
  return board.heldByOtherCount(count) === undefined;
};

function changed(world: World, replica: Replica, index: number, phase: Phase, lease: World["leases"][number]): World {
  const phases = replica.phases.with(index, phase);
  return {
    leases: world.leases.with(index, lease),
    replicas: world.replicas.map((other) => (other.name === replica.name ? { ...other, phases } : other)),
  };
}

/** Returns all that may happen next. A lost holder's writes end before its Lease does, so both are one event. */
async function nextOf(world: World, may: MayBegin, holdsFirst: boolean): Promise<Event[]> {
  const events: Event[] = [];
  for (const replica of world.replicas) {
    const { name, count } = replica;
    for (let index = 0; index < count; index += 1) {
      const phase = replica.phases[index];
      const lease = world.leases[index];
      const own = { holder: name, count };
      const add = (what: string, next: Phase, after: World["leases"][number]): void => {
        events.push({
          what: `${name} ${what} ${index} of ${count}`,
          world: changed(world, replica, index, next, after),
        });
      };
      if (phase === "none" && lease === undefined && holdsFirst) add("takes", "held", own);
      // The defect: it looks before it takes the Lease.
      if (phase === "none" && lease === undefined && !holdsFirst && (await may(world, replica)))
        add("looks at", "held", lease);
      if (phase === "held" && lease === undefined) add("takes late", "working", own);
      if (phase === "held" && lease?.holder === name && (await may(world, replica))) add("begins", "working", own);
      if (phase === "working") add("stops", "stopping", lease);
      if (phase === "stopping" || (phase === "held" && lease?.holder === name)) add("releases", "none", undefined);
      if (phase === "working" || phase === "stopping") add("is lost with", "none", undefined);
    }
  }
  return events;
}

/** Returns a namespace that two have in hand. */
function inTwoHands({ replicas }: World): string | undefined {
  return NAMESPACES.find((namespace) => {
    const hands = replicas.flatMap(({ count, phases }) =>
      phases.filter((phase, index) => phase !== "none" && phase !== "held" && isInShard({ index, count }, namespace)),
    );
    return hands.length > 1;
  });
}

/** Explores all worlds. Returns the events that lead to a namespace in two hands. */
async function explore(counts: readonly number[], may: MayBegin, holdsFirst = true) {
  const most = Math.max(...counts);
  const replicas = counts.map((count, at) => ({ name: `r${at}`, count, phases: new Array<Phase>(count).fill("none") }));
  const first: World = { leases: new Array(most).fill(undefined), replicas };
  const seen = new Set([JSON.stringify(first)]);
  let frontier: { readonly world: World; readonly trace: readonly string[] }[] = [{ world: first, trace: [] }];
  let allWorked = false;
  while (frontier.length > 0) {
    const found: typeof frontier = [];
    for (const { world, trace } of frontier) {
      if (inTwoHands(world) !== undefined) return { trace, states: seen.size, allWorked };
      allWorked ||= NAMESPACES.every((namespace) =>
        world.replicas.some(({ count, phases }) =>
          phases.some((phase, index) => phase === "working" && isInShard({ index, count }, namespace)),
        ),
      );
      for (const { what, world: next } of await nextOf(world, may, holdsFirst)) {
        const key = JSON.stringify(next);
        if (seen.has(key)) continue;
        seen.add(key);
        found.push({ world: next, trace: [...trace, what] });
      }
    }
    frontier = found;
  }
  return { trace: undefined, states: seen.size, allWorked };
}

describe("replicas that take, give and lose the Leases of shards, in any order", () => {
  test.each([
    { what: "with one number of shards", counts: [2, 2] },
    { what: "while the number grows from one", counts: [1, 2] },
    { what: "while the number grows", counts: [2, 3] },
    { what: "while it is changed twice", counts: [1, 2, 2] },
  ])("never have a namespace in two hands $what", async ({ counts }) => {
    const { trace, states, allWorked } = await explore(counts, mayBegin);
    expect(trace).toBeUndefined();
    expect(states).toBeGreaterThan(10);
    expect(allWorked).toBe(true);
  });

  test.each([
    { what: "begin without a look at the other Leases", may: async () => true, holdsFirst: true },
    { what: "look before they take their own Lease", may: mayBegin, holdsFirst: false },
  ])("would have one in two hands if they $what", async ({ may, holdsFirst }) => {
    const { trace } = await explore([1, 2], may, holdsFirst);
    expect(trace).toBeDefined();
  });
});
