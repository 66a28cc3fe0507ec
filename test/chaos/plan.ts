import { generator } from "../support/model/random.ts";
import type { AgentFault } from "./agents.ts";
import { FOLLOWED_DEEDS, type FollowedDeed } from "./followed.ts";
import { OBJECT_DEEDS, OBJECT_FAULTS, type ObjectDeed, type ObjectFault, OTHER_OBJECT_DEEDS } from "./objects/plan.ts";
import type { QueueDeed, QueueFault } from "./queues/plan.ts";
import { SERVICE_DEEDS, type ServiceDeed } from "./services/plan.ts";

/** A fault, mended some seconds later. */
export const FAULTS = [
  "controller killed",
  "controller paused",
  "host API server restarted",
  "member API server stopped",
  "member API server frozen",
  "member etcd restarted",
  "member cut off",
  "member swallows everything",
  "member's answers lost",
  "requests to member lost",
  "member slow",
  "member's connections reset",
  "virtual node cordoned",
  "delegate deleted in its member",
] as const;

/** Faults that take too long for a test, or need a run of its own: two controllers, and a gate before the host. */
const OTHER_FAULTS = [
  "leader ends",
  "leader killed for good",
  "controller paused beyond its lease",
  "namespace deleted in its member",
  "member frozen until it is lost",
  "member's watches expired",
  "member's lists slow",
  "one watch of a member cut",
  "one watch of a member cut, and lists refused",
  "host refuses a write: 409",
  "host refuses a write: 429",
  "host refuses a write: 500",
  "host's answer to a write lost",
  "host's answer to a write lost, and unseen",
  "member leaves and joins again",
  "lease deleted",
  "controller's clock set on by an hour",
  "controller's clock set back by an hour",
  "host API server stopped",
  "host API server frozen",
  "host etcd restarted",
  "controllers cut off from the host",
  "host slow for the controllers",
  "host's answers lost",
] as const;

/** Faults of controllers that share the namespaces by shards. */
export const SHARD_FAULTS = ["a controller leaves for a while", "one controller cut off beyond its lease"] as const;

export type Fault =
  | (typeof FAULTS)[number]
  | (typeof OTHER_FAULTS)[number]
  | (typeof SHARD_FAULTS)[number]
  | ObjectFault
  | AgentFault
  | QueueFault;

/** All that a run of its own has. */
export const LONG_FAULTS: readonly Fault[] = [...FAULTS, ...OTHER_FAULTS, ...OBJECT_FAULTS];

const POD_DEEDS = [
  "run a pod",
  "run a job",
  "deploy",
  "scale",
  "delete a workload",
  "delete a pod",
  "delete a pod by force",
  "run it again",
] as const;

/** Actions of authors. */
export const DEEDS: readonly Deed[] = [...POD_DEEDS, ...OBJECT_DEEDS];

/** Workloads that need more than pods: nodes of a pool, volumes, or a minute of rest at the end. */
const OTHER_DEEDS = [
  "deploy by preferences",
  "change preferences",
  "run a group",
  "run a pod that overflows",
  "run a pod that the host has room for",
  "run a pod with a ConfigMap and a Secret",
  "change a ConfigMap",
  "run a pod with a claim",
  "expose a Deployment",
  "run a pod that never fails over",
  "deploy what leaves a lost member soon",
  "run a StatefulSet",
  "evict a pod",
  "make a namespace and delete it",
  "import a pod that was exported",
] as const;

/** A deed that is about pods. */
export type PodDeed = (typeof POD_DEEDS)[number] | (typeof OTHER_DEEDS)[number];

export type Deed = PodDeed | ObjectDeed | FollowedDeed | QueueDeed | ServiceDeed;

/** All that authors do in a run of its own with pods, with whole objects, and with Services. */
export const LONG_DEEDS: Readonly<Record<"pods" | "objects" | "services", readonly Deed[]>> = {
  pods: [...POD_DEEDS, ...OTHER_DEEDS, ...FOLLOWED_DEEDS],
  objects: [...OBJECT_DEEDS, ...OTHER_OBJECT_DEEDS],
  services: [...POD_DEEDS, "run a StatefulSet", "evict a pod", ...SERVICE_DEEDS],
};

/** An action at a number of milliseconds after the start; `dice` in 0..1 picks its target. */
export type Happening =
  | {
      readonly at: number;
      readonly type: "fault";
      readonly fault: Fault;
      readonly member: "west" | "east";
      readonly lastsMs: number;
      readonly dice: number;
    }
  | { readonly at: number; readonly type: "deed"; readonly deed: Deed; readonly number: number; readonly dice: number };

const FAULT_EVERY_MS = 4_000;
const DEED_EVERY_MS = 600;
const SHORTEST_MS = 500;
const LONGEST_MS = 6_000;

/** The inputs of a plan. */
export interface Repertoire {
  /** Default: those that a test has time for. */
  readonly faults?: readonly Fault[];
  readonly deeds?: readonly Deed[];
}

/** Everything that will happen, in order; the same for the same seed, length and repertoire. */
export function planOf(
  seed: number,
  lengthMs: number,
  { faults = FAULTS, deeds = DEEDS }: Repertoire = {},
): Happening[] {
  const random = generator(seed);
  const happenings: Happening[] = [];
  for (let at = 0; at < lengthMs; at += 2 * DEED_EVERY_MS * random()) {
    happenings.push({ at, type: "deed", deed: pick(deeds, random()), number: happenings.length, dice: random() });
  }
  for (let at = FAULT_EVERY_MS * random(); at < lengthMs; at += 2 * FAULT_EVERY_MS * random()) {
    const member = random() < 0.5 ? "west" : "east";
    const lastsMs = SHORTEST_MS + (LONGEST_MS - SHORTEST_MS) * random();
    happenings.push({ at, type: "fault", fault: pick(faults, random()), member, lastsMs, dice: random() });
  }
  return happenings.sort((a, b) => a.at - b.at);
}

/** The item that the dice, in 0..1, fall on; throws when there is none. */
export function pick<T>(items: readonly T[], dice: number): T {
  const item = items[Math.min(items.length - 1, Math.floor(dice * items.length))];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}
