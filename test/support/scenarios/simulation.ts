import { type DelegationMode, delegationModeOf } from "../../../src/api/delegation-mode.ts";
import { CLUSTER_ANNOTATION, virtualNodeName } from "../../../src/api/keys.ts";
import {
  type KubeObject,
  type Namespace,
  type ObjectKey,
  objectKey,
  objectRef,
  type Pod,
  type Stored,
} from "../../../src/api/kubernetes.ts";
import type { PlacementDefaults } from "../../../src/api/placement-defaults.ts";
import type { WorkloadRef } from "../../../src/api/workload-wishes.ts";
import { decide } from "../../../src/controllers/delegation/decide.ts";
import type { Action } from "../../../src/controllers/delegation/decision/decision.ts";
import type { View } from "../../../src/controllers/delegation/decision/view.ts";
import { onDemand, repelledBy } from "../../../src/controllers/delegation/observe.ts";
import { podRequests } from "../../../src/placement/requests.ts";
import { isBound, isDeleting } from "../../../src/pods/pod-state.ts";
import { isProxy, memberOf } from "../../../src/pods/proxy.ts";
import { Store } from "../../../src/runtime/store.ts";
import { placementFacts } from "../../../src/scheduling/eligibility.ts";
import { NAMESPACE_INDEX, PLACEMENT_INDEXES } from "../../../src/scheduling/known-pods.ts";
import { PlacementState } from "../../../src/scheduling/placement-state.ts";
import { type WishingWorkload, wishesOf } from "../../../src/scheduling/workload.ts";
import type { AdmissionRequest } from "../../../webhook/admission-review.ts";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import type { Verdict } from "../../../webhook/responses.ts";
import { apply, request } from "../../unit/webhook/reviews.ts";
import { MEMBER_NAMES, TROUBLE } from "./members.ts";
import { isWorkload, type Workload } from "./objects.ts";
import { SimulatedMember } from "./simulated-member.ts";

const HOST = { id: "host-id", name: "host" };
const UNREACHABLE = "node.kubernetes.io/unreachable";
// More decisions than any scenario needs; a scenario that never comes to rest reaches the limit.
const DECISIONS = 5000;
// Longer than any wait for a member's scheduler.
const HORIZON_MS = 20_000;

/** A workload, and how many pods it has made so far. */
interface Template {
  readonly object: Workload;
  readonly namespace: string;
  made: number;
}

/**
 * Legation without clusters: what admission, placement and delegation decide, carried out on members that are simulated.
 * Everything that decides is Legation's own.
 */
export class Simulation {
  #now = Date.UTC(2026, 0, 1);
  readonly #namespaces = new Store<Namespace>();
  readonly #defaults = new Store<PlacementDefaults>();
  readonly #proxies = new Store<Pod>(PLACEMENT_INDEXES);
  readonly #members = MEMBER_NAMES.map((name) => new SimulatedMember(name, () => this.#now));
  readonly #templates: Template[] = [];
  readonly #placementState: PlacementState;

  constructor() {
    for (const store of [this.#namespaces, this.#defaults, this.#proxies]) store.synced = true;
    const registry = {
      members: () => this.#members,
      member: (name: string) => this.#members.find((member) => member.name === name),
      unconnected: () => [],
    };
    this.#placementState = new PlacementState({
      classes: undefined,
      registry,
      namespaces: this.#namespaces,
      defaults: this.#defaults,
      wishes: { of: (pod) => wishesOf(pod, (namespace, workload) => this.#wishingWorkload(namespace, workload)) },
      proxies: this.#proxies,
      homeApi: () => ({ state: "unknown", message: "nobody has said" }),
      clock: { now: () => this.#now },
    });
  }

  /** Makes a namespace of the host. */
  namespace(
    name: string,
    labels: Readonly<Record<string, string>>,
    annotations: Readonly<Record<string, string>>,
  ): void {
    this.#namespaces.set({ metadata: { name, uid: name, resourceVersion: "1", labels, annotations } });
  }

  /** Creates the object and its pods; returns why it is refused, or undefined. */
  make(object: Pod | Workload, namespace: string): string | undefined {
    if (!isWorkload(object)) return this.#makePod(object, namespace, object.metadata?.name ?? "");
    const written = { ...object, metadata: { ...object.metadata, namespace } };
    const admitted = admit(written, (request) => mutateWorkload(request, this.#modeOf(namespace)));
    if (typeof admitted === "string") return admitted;
    const entry = { object: admitted, namespace, made: 0 };
    this.#templates.push(entry);
    this.#replicate(entry);
    return undefined;
  }

  /** Decides for every pod until nothing changes, and no member's scheduler is waited for. */
  settle(): void {
    const until = this.#now + HORIZON_MS;
    for (let left = DECISIONS; left > 0; ) {
      let acted = false;
      let next = Number.POSITIVE_INFINITY;
      for (const proxy of this.#proxies.list()) {
        if (isBound(proxy) || isDeleting(proxy)) continue;
        left -= 1;
        const { actions, requeueAt } = decide(this.#observe(proxy), this.#now);
        if (requeueAt !== undefined) next = Math.min(next, requeueAt);
        for (const action of actions) {
          this.#execute(action, objectKey(proxy.metadata));
          acted = true;
        }
      }
      if (acted) continue;
      if (next > until) return;
      this.#now = Math.max(next, this.#now + 1);
    }
    throw new Error(`no rest after ${DECISIONS} decisions`);
  }

  /** Simulates a lost member, a cordoned one and PlacementDefaults. Evicted pods are replaced. */
  trouble(): void {
    const { defaults } = TROUBLE;
    this.#defaults.set({
      ...defaults,
      metadata: { ...defaults.metadata, name: "default", uid: "default", resourceVersion: "1" },
    });
    for (const member of this.#members) {
      if (member.name === TROUBLE.lost) member.lose();
      if (member.name === TROUBLE.cordoned) member.cordon();
    }
    for (const proxy of this.#proxies.list()) {
      const stays = proxy.spec?.tolerations?.some(
        ({ key, tolerationSeconds }) => key === UNREACHABLE && tolerationSeconds === undefined,
      );
      const controlled = proxy.metadata.ownerReferences !== undefined;
      if (memberOf(proxy) !== TROUBLE.lost || stays === true || !controlled) continue;
      this.#update({ ...proxy, metadata: { ...proxy.metadata, deletionTimestamp: new Date(this.#now).toISOString() } });
    }
    for (const entry of this.#templates) this.#replicate(entry);
  }

  /** The namespace's live pods. */
  pods(namespace: string): Stored<Pod>[] {
    return this.#proxies.byIndex(NAMESPACE_INDEX, namespace).filter((pod) => !isDeleting(pod));
  }

  /** Creates or deletes pods until the workload has as many as it wants. */
  #replicate(entry: Template): void {
    const { object, namespace } = entry;
    const { name = "" } = object.metadata ?? {};
    const wanted = object.spec.replicas ?? object.spec.parallelism ?? 1;
    const kind = object.kind === "Deployment" ? "ReplicaSet" : (object.kind ?? "");
    const uid = `${namespace}/${name}`;
    const controller = { apiVersion: object.apiVersion ?? "", kind, name, uid, controller: true };
    const has = this.pods(namespace).filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid).length;
    for (let missing = wanted - has; missing > 0; missing--) {
      const { metadata, spec } = object.spec.template;
      const owned = { metadata: { ...metadata, ownerReferences: [controller] }, spec };
      const problem = this.#makePod({ apiVersion: "v1", kind: "Pod", ...owned }, namespace, `${name}-${entry.made++}`);
      if (problem !== undefined) throw new Error(`${name}: its pods are refused: ${problem}`);
    }
  }

  #wishingWorkload(namespace: string, { kind, name }: WorkloadRef): WishingWorkload | undefined {
    const entry = this.#templates.find(
      ({ object, namespace: other }) => other === namespace && object.kind === kind && object.metadata?.name === name,
    );
    return entry && { annotations: entry.object.metadata?.annotations ?? {} };
  }

  #modeOf(namespace: string): DelegationMode {
    const mode = delegationModeOf(this.#namespaces.get(objectKey({ name: namespace }))?.metadata.labels);
    if (mode === undefined) throw new Error(`namespace ${namespace} is not opted in`);
    return mode;
  }

  #makePod(pod: Pod, namespace: string, name: string): string | undefined {
    const uid = `${namespace}/${name}`;
    const creationTimestamp = new Date(this.#now).toISOString();
    const metadata = { ...pod.metadata, namespace, name, uid, creationTimestamp, resourceVersion: "1" };
    const admitted = admit({ ...pod, metadata }, (request) => mutatePod(request, this.#modeOf(namespace)));
    if (typeof admitted === "string") return admitted;
    const proxy: Stored<Pod> = {
      status: { phase: "Pending" },
      ...admitted,
      metadata: { ...metadata, ...admitted.metadata },
    };
    if (!isProxy(proxy)) throw new Error(`${name}: nothing asks for its delegation`);
    this.#update(proxy);
    return undefined;
  }

  #update(proxy: Stored<Pod>): void {
    this.#proxies.set(proxy);
    this.#placementState.update(proxy);
  }

  #observe(proxy: Stored<Pod>): View {
    const key = objectKey(proxy.metadata);
    const sources = this.#members.map((member) => member.source(key));
    const eligibility = this.#placementState.eligibilities.of(proxy);
    const members = sources.map(({ candidate, connection }) => {
      const repels = repelledBy(candidate, proxy);
      return { ...connection, ...(repels === undefined ? {} : { repels }) };
    });
    const memory = this.#placementState.memories.of(proxy.metadata.uid);
    const view = { ref: objectRef(key), proxy, members, memory, ...placementFacts(eligibility) };
    const candidates = sources.map(({ candidate }) => candidate);
    return onDemand(view, candidates, eligibility, () => undefined);
  }

  /** Executes actions as the controller does, without a network in between. */
  #execute(action: Action, key: ObjectKey): void {
    const proxy = this.#proxies.get(key);
    if (proxy === undefined) return;
    const { uid, namespace } = proxy.metadata;
    const { reservations, retries } = this.#placementState;
    switch (action.type) {
      case "create": {
        const member = this.#member(action.member);
        if (!this.#placementState.groups.mayEnter(uid, member.name)) return;
        const delegate = this.#placementState.eligibilities.delegateIn(proxy, member.candidate(), HOST);
        const asked = { requests: podRequests(delegate), namespace, parked: action.parked === true };
        reservations.attempt(uid, member.name, asked, proxy);
        const refused = member.create(delegate);
        if (refused === undefined) {
          this.#placementState.memories.noteFound(uid, member.name, this.#now);
          return;
        }
        reservations.unmade(uid, member.name);
        const message = `its API server refused the pod: ${refused}`;
        const refusal = { cluster: member.name, reason: "RefusedByMember", message } as const;
        retries.refuse(uid, refusal, { nodesVersion: 0, pod: proxy, sharedBy: "spec" });
        return;
      }
      case "bind": {
        const annotations = {
          ...proxy.metadata.annotations,
          [CLUSTER_ANNOTATION]: action.member,
          ...this.#placementState.divisions.costAnnotations(uid),
        };
        const spec = { containers: [], ...proxy.spec, nodeName: virtualNodeName(action.member) };
        reservations.noteBound(uid, action.member, proxy);
        this.#update({ ...proxy, metadata: { ...proxy.metadata, annotations }, spec });
        return;
      }
      case "reserve":
        reservations.reserve(uid, action.member, { requests: action.requests, namespace });
        return;
      case "delete":
        this.#member(action.member).delete(key);
        return;
      case "noteRefusal":
        retries.refuse(uid, action.refusal, { ...action, pod: proxy });
        return;
      case "report": {
        this.#placementState.memories.noteReported(uid, action, this.#now);
        const { reason, message } = action;
        const condition = { type: "PodScheduled", status: "False", reason, message };
        this.#update({ ...proxy, status: { phase: "Pending", conditions: [condition] } });
        return;
      }
      case "announce":
        return;
      default:
        throw new Error(`a scenario does not come to ${action.type}`);
    }
  }

  #member(name: string): SimulatedMember {
    const found = this.#members.find((member) => member.name === name);
    if (found === undefined) throw new Error(`there is no member ${name}`);
    return found;
  }
}

/** The object as admission makes it, or why it is refused. */
function admit<T extends KubeObject>(object: T, mutate: (request: AdmissionRequest) => Verdict): T | string {
  const verdict = mutate(request({ kind: object.kind ?? "", object }));
  return verdict.kind === "denied" ? verdict.message : apply(object, verdict);
}
