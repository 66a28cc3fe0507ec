import { execute, plan, seeHost, seeMember } from "./controller.ts";
import { joined } from "./disasters.ts";
import { beginning, events, memberEvents, muchLater, plannedOverflow, type Scenario } from "./environment.ts";
import { lateEvents, settleEvents } from "./late.ts";
import { executeOverflow, hostEvents, seeWaiting } from "./overflow.ts";
import { brokenRule, waitsForName, wrongAtRest } from "./rules.ts";
import { changeMember, type Event, keyOf, type World } from "./world.ts";

/** The result of an exploration. */
export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  /** Every state within the bounds was seen. */
  readonly complete: boolean;
  readonly violation?: Violation;
}

export interface Violation {
  readonly rule: string;
  /** Shortest path there, and on to rest where the rest is wrong. */
  readonly trace: readonly string[];
}

interface Bounds {
  readonly states: number;
}

/** Bound on the steps from a world to rest; far more than any needs. */
const REST_STEPS = 300;

/** Explores all worlds of the scenario, breadth first, until a rule is broken or the bounds are reached. */
export function explore(scenario: Scenario, bounds: Bounds): Exploration {
  const first = firstWorld(scenario);
  const firstKey = keyOf(first);
  const cameFrom = new Map<string, { readonly key: string; readonly what: string } | undefined>([
    [firstKey, undefined],
  ]);
  const atRest = new Set<string>();
  const trace = (key: string): string[] => {
    const steps: string[] = [];
    for (let at = cameFrom.get(key); at !== undefined; at = cameFrom.get(at.key)) steps.push(at.what);
    return steps.reverse();
  };
  let transitions = 0;
  let frontier = [{ world: first, key: firstKey }];
  while (frontier.length > 0) {
    const next: typeof frontier = [];
    for (const { world, key } of frontier) {
      for (const event of events(world, scenario)) {
        transitions += 1;
        const found = (rule: string, rest: readonly string[] = []): Exploration => ({
          states: cameFrom.size,
          transitions,
          complete: false,
          violation: { rule, trace: [...trace(key), event.what, ...rest] },
        });
        const rule = brokenRule(world, event.world);
        if (rule !== undefined) return found(rule);
        const nextKey = keyOf(event.world);
        if (cameFrom.has(nextKey)) continue;
        cameFrom.set(nextKey, { key, what: event.what });
        const restless = settle(event.world, scenario, atRest);
        if (restless !== undefined) return found(restless.rule, ["--", ...restless.trace]);
        next.push({ world: event.world, key: nextKey });
      }
      if (cameFrom.size >= bounds.states) return { states: cameFrom.size, transitions, complete: false };
    }
    frontier = next;
  }
  return { states: cameFrom.size, transitions, complete: true };
}

function firstWorld(scenario: Scenario): World {
  let world = beginning(scenario);
  const { running = false, offered = false, after = [] } = scenario;
  for (const name of after) {
    const happened = events(world, scenario).find(({ what }) => what === name);
    if (happened === undefined) throw new Error(`the scenario begins after "${name}", which cannot happen`);
    world = happened.world;
  }
  if (!running && !offered) return world;
  let event = events(world, scenario).find(({ what }) => what === "create");
  while (event !== undefined) {
    world = event.world;
    if (offered && world.overflow?.pending.length === 1) return world;
    event = fairEvent(world, scenario);
  }
  return world;
}

/** Runs from a world to rest without further faults. Returns what is wrong there, or that rest was not reached. */
function settle(start: World, scenario: Scenario, atRest: Set<string>): Violation | undefined {
  const trace: string[] = [];
  const passed: string[] = [];
  let world: World = { ...start, faults: 0, created: 0 };
  for (let step = 0; step < REST_STEPS; step++) {
    const key = keyOf(world);
    if (atRest.has(key)) break;
    passed.push(key);
    const event = fairEvent(world, scenario);
    if (waitsForName(world)) break;
    if (event === undefined) {
      const wrong = wrongAtRest(world);
      if (wrong !== undefined) return { rule: `at rest: ${wrong}`, trace };
      break;
    }
    trace.push(event.what);
    const rule = brokenRule(world, event.world);
    if (rule !== undefined) return { rule, trace };
    world = event.world;
    if (step === REST_STEPS - 1) return { rule: "does not come to rest", trace: trace.slice(0, 60) };
  }
  for (const key of passed) atRest.add(key);
  return undefined;
}

/** Returns the next event without disturbance, in an order that does everything sooner or later. */
function fairEvent(world: World, scenario: Scenario): Event | undefined {
  const { decide } = scenario;
  const key = keyOf(world);
  const changing = (event: Event): Event | undefined => (keyOf(event.world) === key ? undefined : event);
  const [arrival] = lateEvents(world);
  if (arrival !== undefined) return arrival;
  for (const { name, linked, reachable, outOfService, read, versions, left } of world.members) {
    if (left === true) return { what: `${name}: joined again`, world: joined(world, name) };
    if (!linked || outOfService) {
      return {
        what: `${name}: mended`,
        world: changeMember(world, name, (m) => ({ ...m, linked: true, outOfService: false })),
      };
    }
    if (!read || versions.length > 1) return { what: `${name}: seen`, world: seeMember(world, name) };
    if (!reachable) {
      return { what: `${name}: reachable`, world: changeMember(world, name, (m) => ({ ...m, reachable: true })) };
    }
  }
  const [settled] = settleEvents(world);
  if (settled !== undefined) return settled;
  if (world.host.versions.length > 1) return { what: "host: seen", world: seeHost(world) };
  if ((world.overflow?.host.versions.length ?? 0) > 1) return { what: "waiting: seen", world: seeWaiting(world) };
  const planned = world.pending.length > 0 ? world : plan(world, decide);
  const acted =
    planned === undefined
      ? undefined
      : changing({ what: `acts: ${planned.pending.map(({ type }) => type)}`, world: allDone(planned) });
  if (acted !== undefined) return acted;
  const overflowing = plannedOverflow(world, scenario);
  if (overflowing !== undefined) {
    const overflowed = changing({ what: "overflows", world: executeOverflow(overflowing, "done") });
    if (overflowed !== undefined) return overflowed;
  }
  const [atHost] = hostEvents(world).filter(({ what }) => !/succeeded|makes room|scheduled/.test(what));
  if (atHost !== undefined) return atHost;
  for (const member of world.members) {
    const [event] = memberEvents(world, member).filter(({ what }) => !what.endsWith("succeeded"));
    if (event !== undefined) return event;
  }
  return changing({ what: "time passes", world: muchLater(world) });
}

function allDone(world: World): World {
  let current = world;
  while (current.pending.length > 0) current = execute(current, "done");
  return current;
}
