import { byName } from "../api/json.ts";
import { DELETION_COST_ANNOTATION, OWN_DELETION_COST_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import type { SchedulingPreferences } from "../api/preferences.ts";
import type { Amounts } from "../api/quantity.ts";
import type { Candidate, Rule } from "../placement/candidate.ts";
import { divisionShares, type Replicas } from "../placement/division.ts";
import { DivisionOrder } from "../placement/division-order.ts";
import { divisionRule, type Others } from "../placement/division-rule.ts";
import { hasRoom } from "../placement/rank.ts";
import { podRequests } from "../placement/requests.ts";
import { controllerOf } from "../pods/pod-state.ts";
import { OwnedProxies } from "./owned-proxies.ts";
import { workloadOf } from "./workload.ts";

interface Known {
  readonly signature: string;
  readonly preferences: SchedulingPreferences;
  readonly order: DivisionOrder;
}

// Kinds that scale down by deletion cost.
const KINDS_WITH_COST: ReadonlySet<string> = new Set(["ReplicaSet", "ReplicationController"]);

/** Ranks members for each owner's next replica, and gives each replica its deletion cost. */
export class Divisions {
  readonly proxies: OwnedProxies = new OwnedProxies();
  readonly #known = new Map<string, Known>();

  rule(
    proxy: Stored<Pod>,
    preferences: SchedulingPreferences,
    candidates: readonly Candidate[],
    requestsIn?: (candidate: Candidate) => Amounts,
  ): Rule {
    const owner = controllerOf(proxy)?.uid;
    const placed: Replicas = byName(Object.fromEntries(this.proxies.counts(owner ?? "").without(proxy.metadata.uid)));
    const requests = podRequests(proxy);
    const others = owner === undefined ? [] : this.proxies.others(owner);
    const capacities: Record<string, number> = byName();
    for (const candidate of candidates) {
      const { name } = candidate;
      if (hasRoom(requestsIn?.(candidate) ?? requests, candidate)) continue;
      const counts = others.map((other) => this.proxies.counts(other).counts.get(name) ?? 0);
      capacities[name] = counts.reduce((sum, count) => sum + count, placed[name] ?? 0);
    }
    const order = this.#order(proxy, preferences, candidates, capacities);
    if (owner === undefined || others.length === 0) return divisionRule({ preferences, order, placed });
    const beside = this.#beside(owner, others, candidates, capacities);
    return divisionRule({ preferences, order, placed, others: beside });
  }

  #beside(owner: string, others: readonly string[], candidates: readonly Candidate[], capacities: Replicas): Others {
    const clusters = candidates.map(({ name }) => name);
    const counted = new Set(clusters);
    return {
      leaving: others.flatMap((other) => this.proxies.leaving(other).filter((member) => counted.has(member))),
      atOnce: this.proxies.atOnce(owner),
      clusters,
      roomy: clusters.filter((name) => capacities[name] === undefined),
    };
  }

  /** Replicas furthest above their share go first. */
  costAnnotations(proxyUid: string): Record<string, string> {
    const own = this.proxies.get(proxyUid);
    if (own?.costed !== true || own.member === undefined || own.nth === undefined) return {};
    const known = this.#known.get(own.owner);
    if (known === undefined) return {};
    const all = this.proxies.total(own.owner);
    // During an update the last placed replica goes first, so that a rollback reverses the update.
    const updating = this.proxies.others(own.owner).length > 0;
    const nth = updating ? own.ordinal : known.order.position(own.member, own.nth, all);
    const position = nth ?? all + own.nth;
    const cost = String(-position);
    return { [DELETION_COST_ANNOTATION]: cost, [OWN_DELETION_COST_ANNOTATION]: cost };
  }

  update(proxy: Stored<Pod>): void {
    this.proxies.update(proxy, hasNoCost(proxy));
  }

  remove(proxy: Stored<Pod>): void {
    this.proxies.remove(proxy.metadata.uid);
    const owner = controllerOf(proxy)?.uid;
    if (owner !== undefined && !this.proxies.has(owner)) this.#known.delete(owner);
  }

  #order(
    proxy: Stored<Pod>,
    preferences: SchedulingPreferences,
    candidates: readonly Candidate[],
    capacities: Replicas,
  ): DivisionOrder {
    const owner = controllerOf(proxy)?.uid;
    const names = candidates.map(({ name }) => name);
    const signature = names.map((name) => (name in capacities ? `${name}=${capacities[name]}` : name)).join(",");
    const known = owner === undefined ? undefined : this.#known.get(owner);
    if (known?.signature === signature && known.preferences === preferences) return known.order;
    const order = new DivisionOrder(divisionShares(preferences, names, { capacities, key: workloadOf(proxy) }));
    if (owner !== undefined) this.#known.set(owner, { signature, preferences, order });
    return order;
  }
}

function hasNoCost(proxy: Stored<Pod>): boolean {
  const kind = controllerOf(proxy)?.kind ?? "";
  return KINDS_WITH_COST.has(kind) && proxy.metadata.annotations?.[DELETION_COST_ANNOTATION] === undefined;
}
