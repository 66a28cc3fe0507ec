import { createHash } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { RelayPod } from "./endpoints.ts";
import type { Destination } from "./routes.ts";

// Some 20 MB of addresses and uids; the longest unused are forgotten first.
const MOST_CLIENTS = 100_000;

/** Chooses pods as kube-proxy does: any, or with `sessionAffinity: ClientIP` the one that the client has been given before. */
export class Choice {
  readonly #clock: Pick<Clock, "now">;
  /** The pods given, by Service and client's address; the longest unused first. */
  readonly #given = new Map<string, { readonly uid: string; readonly until: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns the pods in the order in which to try them. */
  order({ pods, affinityMs }: Destination, service: string, client: string): RelayPod[] {
    if (affinityMs === undefined) return shuffled(pods);
    const key = `${service} ${client}`;
    const given = this.#given.get(key);
    const uid = given !== undefined && given.until > this.#clock.now() ? given.uid : "";
    const first = pods.find((pod) => pod.uid === uid);
    // The order is by hash, so that replicas and later processes choose the same pod.
    const others = pods.filter((pod) => pod !== first);
    const ranked = others.toSorted((a, b) => (rank(key, b) < rank(key, a) ? -1 : 1));
    return first === undefined ? ranked : [first, ...ranked];
  }

  /** Notes the pod that took the client's connection. */
  taken({ uid }: RelayPod, affinityMs: number | undefined, service: string, client: string): void {
    if (affinityMs === undefined) return;
    const key = `${service} ${client}`;
    this.#given.delete(key);
    this.#given.set(key, { uid, until: this.#clock.now() + affinityMs });
    const [oldest] = this.#given.keys();
    if (this.#given.size > MOST_CLIENTS && oldest !== undefined) this.#given.delete(oldest);
  }
}

/** Returns the pod's rank for the client in rendezvous hashing: a pod that comes or goes moves no client of another. */
function rank(key: string, { uid }: RelayPod): string {
  return createHash("sha1").update(`${key} ${uid}`).digest("hex");
}

function shuffled(pods: readonly RelayPod[]): RelayPod[] {
  const order = [...pods];
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    const [a, b] = [order[last], order[other]];
    if (a !== undefined && b !== undefined) [order[last], order[other]] = [b, a];
  }
  return order;
}
