import type { AnyObject, DelegatedType } from "../api/delegated-type.ts";
import { CLUSTER_ANNOTATION, DELEGATION_LABEL, virtualNodeName } from "../api/keys.ts";
import { type KubeObject, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import type { Amounts } from "../api/quantity.ts";
import { decide } from "../controllers/delegation/decide.ts";
import type { MemberView, View } from "../controllers/delegation/decision/view.ts";
import { recordedMember } from "../copies/objects.ts";
import { ObjectsInMembers } from "../copies/objects-in-members.ts";
import type { Refusal } from "../placement/candidate.ts";
import { mergedNeeds, type Needs, needsState, preparationIn } from "../placement/needs.ts";
import { behindBest, explain, type RankInput, type Ranking, rank } from "../placement/rank.ts";
import { podRequests } from "../placement/requests.ts";
import { isOverflow } from "../pods/overflow.ts";
import { isBound, isGated, isLive, isTerminal } from "../pods/pod-state.ts";
import { memberOf } from "../pods/proxy.ts";
import { Store } from "../runtime/store.ts";
import { placementFacts, rankInput, type Sharing } from "../scheduling/eligibility.ts";
import { PLACEMENT_INDEXES } from "../scheduling/known-pods.ts";
import { NOT_OVERFLOWED, noRoomEither, staysForClaim } from "../scheduling/overflow-reasons.ts";
import { PlacementState } from "../scheduling/placement-state.ts";
import { allRefusals } from "../scheduling/retries/pause.ts";
import { objectToPlace, placementOf, rankMembers } from "../scheduling/whole/object-placement.ts";
import { wishesOf } from "../scheduling/workload.ts";
import { type Declined, NO_PLACE, type WholePlace, type WholeType } from "../whole/type.ts";
import { type ClaimTemplate, SimulatedClaims } from "./claims.ts";
import type { HostState } from "./host-state.ts";
import { type NamedObjects, namedNeeds } from "./named-objects.ts";
import { SimulatedMember } from "./simulated-member.ts";

export interface SimulatedPlace {
  /** The member where it runs. Absent: it waits. */
  readonly cluster?: string;
  /** The member in which it is parked when none has room. */
  readonly waitsIn?: string;
  /** Why it waits, as its condition and event would say. */
  readonly reason?: string;
  readonly message?: string;
  readonly others: readonly Declined[];
}

interface Observed {
  readonly view: View;
  readonly input: RankInput;
  readonly ranking: Ranking;
}

// The controller waits quietly for younger pods.
const CREATED_AGO_MS = 3_600_000;

/** Runs the controller's own placement over the host's state, with one pod after another. */
export class Simulation {
  readonly #members: ReadonlyMap<string, SimulatedMember>;
  readonly #proxies = new Store<Pod>(PLACEMENT_INDEXES);
  readonly #placementState: PlacementState;
  readonly #now: number;
  readonly #claims: SimulatedClaims;
  readonly #named: NamedObjects;

  constructor(host: HostState, now: number) {
    const {
      clusters,
      nodes,
      proxies,
      namespaces,
      defaults,
      findWorkload = () => undefined,
      claims,
      followed = [],
    } = host;
    this.#now = now;
    this.#named = host;
    const nodeOf = new Map(nodes.map((node) => [node.metadata.name, node]));
    const members = clusters.map((each) => new SimulatedMember(each, nodeOf.get(virtualNodeName(each.metadata.name))));
    this.#members = new Map(members.map((member) => [member.name, member]));
    this.#claims = new SimulatedClaims(claims, (name) => this.#members.has(name));
    this.#placementState = new PlacementState({
      classes: undefined,
      registry: { members: () => members, member: (name) => this.#members.get(name), unconnected: () => [] },
      namespaces: storeOf(namespaces.filter(({ metadata }) => metadata.labels?.[DELEGATION_LABEL] !== undefined)),
      defaults: storeOf(defaults),
      wishes: {
        of: (pod) => wishesOf(pod, findWorkload),
      },
      confinement: (pod) => followed.map(({ groupOf }) => groupOf(pod)).find((group) => group !== undefined),
      proxies: this.#proxies,
      // Only the controller knows the way to the host.
      homeApi: () => ({ state: "known", address: { host: "", port: "" } }),
      clock: { now: () => now },
    });
    const filling = this.fill(proxies);
    while (filling.next().done !== true);
  }

  /** Adds the host's proxies, once. Yields between steps, so that a process with other work can pause. */
  *fill(proxies: readonly Stored<Pod>[]): Generator<undefined, void> {
    for (const proxy of proxies) this.#proxies.set(proxy);
    for (const proxy of proxies) {
      this.#add(proxy);
      yield;
    }
    // Pods that wait already come first.
    const waiting = proxies.filter((pod) => !isBound(pod) && isLive(pod));
    for (const proxy of waiting.sort(byAge)) {
      this.place(proxy);
      yield;
    }
  }

  get members(): readonly SimulatedMember[] {
    return [...this.#members.values()];
  }

  /** Returns how the pod's workload is divided over members that are open to it; undefined without preferences. */
  sharing(proxy: Stored<Pod>): Sharing | undefined {
    return this.#placementState.eligibilities.sharing(proxy);
  }

  addClaims(namespace: string, claims: readonly ClaimTemplate[]): void {
    for (const { name, spec } of claims) this.#claims.add(namespace, name, spec);
  }

  /** Gives the pod its place, and leaves it there. */
  place(proxy: Stored<Pod>): SimulatedPlace {
    this.#add(proxy);
    if (isGated(proxy)) return { reason: "SchedulingGated", message: "waits for its scheduling gates", others: [] };
    const stays = isOverflow(proxy) ? staysForClaim(proxy) : undefined;
    if (stays !== undefined) return { reason: NOT_OVERFLOWED, message: stays, others: [] };
    const observed = this.#observe(proxy);
    const { refusals } = observed.ranking;
    const { actions } = decide(observed.view, this.#now);
    const create = actions.find((action) => action.type === "create");
    if (create !== undefined && create.parked !== true) return this.#run(proxy, create.member, observed);
    const report = actions.find((action) => action.type === "report");
    if (create === undefined && report !== undefined && report.reason !== "NotPlaced") {
      return { reason: report.reason, message: report.message, others: [] };
    }
    // In overflow mode a pod without room stays with the host's scheduler.
    if (isOverflow(proxy)) return { reason: NOT_OVERFLOWED, message: noRoomEither(refusals), others: refusals };
    if (create !== undefined) return this.#park(proxy, create.member, refusals);
    return { reason: "NotPlaced", message: report?.message ?? explain(refusals), others: refusals };
  }

  /** Adds pods that are created together, before they get their places: a gang is judged by all of its pods. */
  announce(proxies: readonly Stored<Pod>[]): void {
    for (const proxy of proxies) this.#add(proxy);
  }

  /** Takes pods back, as if they had never been placed. */
  withdraw(proxies: readonly Stored<Pod>[]): void {
    for (const proxy of proxies) {
      const { uid } = proxy.metadata;
      this.#proxies.delete(objectKey(proxy.metadata));
      this.#placementState.remove(proxy);
      for (const { requests } of this.members) requests.release(uid);
      this.#claims.withdraw(proxy);
    }
  }

  placeObject(object: Stored<AnyObject>, type: DelegatedType | WholeType): WholePlace {
    const options = { rules: this.#placementState.podRules, candidates: this.members.map((one) => one.candidate()) };
    if ("place" in type) return type.place(object, options);
    const place = objectToPlace(object, { type, ...options });
    const { problem, members } = placementOf(place);
    if (problem !== undefined) return { ...NO_PLACE, problem };
    const inMembers = new ObjectsInMembers<AnyObject>();
    const misfitsIn = (names: readonly (string | undefined)[]): WholePlace["misfits"] =>
      members.flatMap(({ candidate, share }) => {
        const { name: cluster } = candidate;
        if (!names.includes(cluster)) return [];
        const given = inMembers.of(object, candidate, { share, pointer: type.spec.replicas });
        return given.state === "unknown" && given.message !== undefined ? [{ cluster, message: given.message }] : [];
      });
    if (type.spec.exclusive === true && recordedMember(object) === undefined) {
      const { fitting, refusals } = rankMembers(place);
      const [best] = fitting;
      const behind = fitting.slice(1).map((cluster) => ({ cluster, message: `${best} gets it: one member does` }));
      const clusters = best === undefined ? [] : [{ cluster: best }];
      return { clusters, others: [...refusals, ...behind], misfits: misfitsIn([best]) };
    }
    const clusters = members.flatMap(({ candidate: { name: cluster, closed }, excluded }) => {
      if (excluded !== undefined) return [];
      const later = closed?.reason === "ClusterNotReady" ? { message: `as soon as it answers: ${closed.message}` } : {};
      return [{ cluster, ...later }];
    });
    return {
      clusters,
      others: members.flatMap(({ candidate: { name: cluster }, excluded: message }) =>
        message === undefined ? [] : [{ cluster, message }],
      ),
      misfits: misfitsIn(clusters.map(({ cluster }) => cluster)),
    };
  }

  #run(proxy: Stored<Pod>, member: string, { input, ranking }: Observed): SimulatedPlace {
    // Before the pod's own requests count.
    const others = [...ofOthers(ranking.refusals, member), ...behindBest(input, ranking, member)];
    this.#reserve(proxy, member, false);
    this.#bind(proxy, member);
    this.#claims.place(proxy, member);
    if (this.#placementState.eligibilities.apiMode(proxy) === "host") this.#members.get(member)?.needsHomeApi();
    return { cluster: member, others };
  }

  /** Lets the pod wait in the member. Only its scheduler knows for what, and the condition has its words then: these are a forecast. */
  #park(proxy: Stored<Pod>, member: string, refusals: readonly Refusal[]): SimulatedPlace {
    this.#reserve(proxy, member, true);
    const others = ofOthers(refusals, member);
    return { waitsIn: member, reason: "NotPlaced", message: explain(refusals), others };
  }

  #reserve(proxy: Stored<Pod>, member: string, parked: boolean): void {
    const { uid, namespace } = proxy.metadata;
    const asked = { requests: this.#requestsIn(proxy, member), namespace, parked };
    this.#placementState.reservations.attempt(uid, member, asked, proxy);
  }

  /** Returns the first missing object, which the controller waits for before claims. */
  #needs(proxy: Stored<Pod>): Needs | undefined {
    const named = namedNeeds(proxy, this.#named, (name) => this.#members.get(name));
    return mergedNeeds([named ?? [], this.#claims.needs(proxy) ?? []].flat());
  }

  #add(proxy: Stored<Pod>): void {
    this.#proxies.set(proxy);
    this.#placementState.update(proxy);
    const member = this.#members.get(memberOf(proxy) ?? "");
    if (member === undefined || isTerminal(proxy)) return;
    member.requests.reserve(proxy.metadata.uid, this.#requestsIn(proxy, member.name), proxy.metadata.namespace);
  }

  #bind(proxy: Stored<Pod>, member: string): void {
    const { uid, annotations } = proxy.metadata;
    const bound: Stored<Pod> = {
      ...proxy,
      metadata: { ...proxy.metadata, annotations: { ...annotations, [CLUSTER_ANNOTATION]: member } },
      spec: { containers: [], ...proxy.spec, nodeName: virtualNodeName(member) },
    };
    this.#proxies.set(bound);
    this.#placementState.update(bound);
    this.#placementState.memories.forget(uid);
  }

  #observe(pod: Stored<Pod>): Observed {
    const creationTimestamp = new Date(this.#now - CREATED_AGO_MS).toISOString();
    const proxy = { ...pod, metadata: { ...pod.metadata, creationTimestamp } };
    const { namespace = "", name, uid } = proxy.metadata;
    const needs = this.#needs(proxy);
    const eligibility = this.#placementState.eligibilities.of(proxy);
    const candidates = this.members.map((member) => member.candidate());
    const input = rankInput(proxy, eligibility, candidates, needs);
    const ranking = rank(input);
    const state = needsState(needs);
    const view: View = {
      ref: { namespace, name },
      proxy,
      members: this.members.map((member) => viewOf(member, this.#now, needs)),
      memory: this.#placementState.memories.of(uid),
      ranking,
      ...(state === undefined ? {} : { needs: state }),
      ...placementFacts(eligibility),
    };
    return { view, input, ranking: { ...ranking, refusals: allRefusals(ranking, view, this.#now) } };
  }

  #requestsIn(proxy: Stored<Pod>, member: string): Amounts {
    const candidate = this.#members.get(member)?.candidate();
    const overridden = candidate && this.#placementState.eligibilities.specIn(proxy, candidate);
    const spec = overridden !== undefined && "spec" in overridden ? overridden.spec : proxy.spec;
    return podRequests({ ...proxy, ...(spec === undefined ? {} : { spec }) });
  }
}

function ofOthers(refusals: readonly Refusal[], member: string): Refusal[] {
  return refusals.filter(({ cluster }) => cluster !== member);
}

function viewOf(member: SimulatedMember, now: number, needs: Needs | undefined): MemberView {
  const { name } = member;
  return {
    name,
    reachable: true,
    reachableSince: now,
    read: true,
    preparation: preparationIn(needs, name),
    scheduleTimeoutMs: 0,
    nodesVersion: 0,
  };
}

function storeOf<T extends KubeObject>(objects: readonly Stored<T>[]): Store<T> {
  const store = new Store<T>();
  for (const object of objects) store.set(object);
  store.synced = true;
  return store;
}

function byAge(a: Stored<Pod>, b: Stored<Pod>): number {
  const ageOf = ({ metadata }: Stored<Pod>): string => `${metadata.creationTimestamp ?? ""} ${metadata.name}`;
  return ageOf(a) < ageOf(b) ? -1 : 1;
}
