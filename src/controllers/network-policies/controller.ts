import type { NetworkPolicy, ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { notReadYet } from "../../clusters/readiness.ts";
import { NETWORK_POLICY } from "../../copies/network-policies.ts";
import { withoutAmounts } from "../../kube/messages.ts";
import { isPreparedIn, type Needs, type Preparation, refusedIn } from "../../placement/needs.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import { NAMESPACE_INDEX } from "../../scheduling/known-pods.ts";
import { Copier } from "../copying/copier.ts";
import { type PodCopier, type PodCopierOptions, unboundProxy, wakeWaiting } from "../copying/pod-copier.ts";
import { type PlaceInMember, PodsInMembers } from "../copying/pods-in-members.ts";

const { kind: KIND } = NETWORK_POLICY.resource;

/** Gives members the NetworkPolicies of their pods' namespaces: no pod starts before them. */
export class NetworkPolicyController implements PodCopier {
  readonly #options: PodCopierOptions;
  readonly #copier: Copier<NetworkPolicy>;
  readonly #placements = new PodsInMembers();
  /** The state of the copies in `member/namespace`, as waiting pods were last told. */
  readonly #assessed = new Map<string, string>();

  constructor(options: PodCopierOptions) {
    this.#options = options;
    this.#copier = new Copier<NetworkPolicy>({
      ...options,
      name: "network-policies",
      kinds: [NETWORK_POLICY],
      clause: ", which may concern the pod",
      users: {
        areKnown: () => options.proxies.synced,
        use: (member, { namespace }) => ({
          demand: this.#isUsed(member, namespace) ? "needed" : "unused",
          // A deleted policy ends for pods that run, and a namespace without pods keeps its copies a moment longer.
          outlivesSource: !this.#isUsed(member, namespace),
        }),
        anyNeeds: () => options.proxies.size > 0,
        onCopy: (member, { namespace }) => this.#reassess({ member, namespace }),
        onSource: (_kind, { metadata: { namespace = "" } }) => this.#onSource(namespace),
        onSources: () => {
          for (const member of options.registry.members()) this.#copier.onMember(member);
          wakeWaiting(options.proxies.list(), options.events);
        },
        onMember: (member) => this.#onMember(member),
        onRead: () => options.events.emit("copiesRead"),
        onMemberState: (member) => {
          for (const namespace of this.#namespacesOf(member)) this.#reassess({ member: member.name, namespace });
          // Pods of other namespaces may have been told that the member cannot be read.
          if (this.#copier.copies.isCurrent(member)) options.events.emit("copiesRead");
        },
      },
    });
  }

  stop(): Promise<void> {
    return this.#copier.stop();
  }

  onProxies(member: Member): void {
    this.#copier.onMember(member);
  }

  onMembers(): void {
    this.#copier.onMembers();
    for (const place of this.#assessed.keys()) {
      const [member = ""] = place.split("/");
      if (this.#options.registry.member(member) === undefined) this.#assessed.delete(place);
    }
  }

  onConnection(member: Member): void {
    if (member.reachable) this.#copier.onMember(member);
  }

  onEnded({ name: member }: Member, { metadata: { namespace = "" } }: Stored<Pod>): void {
    this.#onLeft({ member, namespace });
  }

  onProxy({ type, object: proxy }: ReflectorEvent<Pod>): void {
    const { uid, namespace = "" } = proxy.metadata;
    if (type !== "deleted" && !isTerminal(proxy)) {
      this.#copier.sources.need(KIND, namespace);
      const member = memberOf(proxy);
      if (member !== undefined) this.#place(proxy, member);
      return;
    }
    const left = this.#placements.forget(uid);
    if (left !== undefined) this.#onLeft(left);
    this.#copier.sources.release(KIND, namespace);
  }

  needs({ metadata: { namespace = "" } }: Stored<Pod>): Needs | undefined {
    const { sources } = this.#copier;
    if (sources.isRead(KIND, namespace)) {
      const policies = sources.inNamespace(KIND, namespace);
      if (policies.length === 0) return undefined;
      return { state: "there", in: (member) => this.#preparation({ member, namespace }, policies) };
    }
    const message = sources.failure(KIND, namespace);
    return message === undefined ? { state: "awaited" } : { state: "missing", reason: "NetworkNotReady", message };
  }

  /** Returns what is known before the pod is given to the member. */
  refusal(pod: Stored<Pod>, member: string): string | undefined {
    this.#copier.sources.need(KIND, pod.metadata.namespace ?? "");
    return refusedIn(this.needs(pod), member);
  }

  prepare(key: ObjectKey, proxyUid: string, member: string): boolean {
    const proxy = unboundProxy(this.#options.proxies, key, proxyUid);
    if (proxy === undefined) return true;
    this.#place(proxy, member);
    return isPreparedIn(this.needs(proxy), member);
  }

  /** No pod starts before it is under the rules that it would be under here. */
  #preparation({ member: name }: PlaceInMember, policies: readonly Stored<NetworkPolicy>[]): Preparation {
    const member = this.#options.registry.member(name);
    const { copies } = this.#copier;
    if (member === undefined) return "unprepared";
    if (!copies.read(member)) return { refused: notReadYet("NetworkPolicies") };
    // Copies that the store shows may be gone, with their namespace for example.
    if (!copies.isCurrent(member)) {
      const reason = copies.failing(member);
      return reason === undefined ? "unprepared" : { refused: `its NetworkPolicies cannot be read: ${reason}` };
    }
    let preparation: Preparation = "prepared";
    for (const policy of policies) {
      const { stays, drift, refusal, held } = this.#copier.standing(member, this.#copier.nameOf(KIND, policy));
      if (stays && (drift === "none" || drift === "metadata")) continue;
      const what = `NetworkPolicy ${policy.metadata.name}`;
      if (refusal !== undefined) return { refused: refusal.message };
      if (held === "Undone") return { refused: `another client there keeps changing or deleting its copy of ${what}` };
      if (held === "NoEffect") return { refused: `its API server does not keep ${what} as the host has it` };
      preparation = "unprepared";
    }
    return preparation;
  }

  #reassess({ member, namespace }: PlaceInMember): void {
    const key = `${member}/${namespace}`;
    const { sources } = this.#copier;
    const policies = sources.isRead(KIND, namespace) ? sources.inNamespace(KIND, namespace) : undefined;
    if (policies?.length === 0) return;
    const preparation = policies && this.#preparation({ member, namespace }, policies);
    const answer = preparation === undefined ? "unread" : withoutAmounts(JSON.stringify(preparation));
    if (this.#assessed.get(key) === answer) return;
    this.#assessed.set(key, answer);
    this.#wake(namespace);
  }

  #place(proxy: Stored<Pod>, name: string): void {
    const { namespace = "" } = proxy.metadata;
    const placed = this.#placements.place(proxy, name);
    if (placed?.left !== undefined) this.#onLeft(placed.left);
    if (placed?.isFirst === true) this.#enqueue({ member: name, namespace });
  }

  #onLeft(place: PlaceInMember): void {
    const member = this.#options.registry.member(place.member);
    if (member !== undefined && !this.#isUsed(member, place.namespace)) this.#enqueue(place);
  }

  #onSource(namespace: string): void {
    for (const { name } of this.#options.registry.members()) this.#assessed.delete(`${name}/${namespace}`);
    this.#wake(namespace);
  }

  #onMember(member: Member): void {
    const pods = member.delegates.list().map(({ metadata }) => metadata.namespace ?? "");
    for (const namespace of new Set([...pods, ...this.#placements.namespacesIn(member.name)])) {
      this.#enqueue({ member: member.name, namespace });
    }
  }

  #namespacesOf(member: Member): ReadonlySet<string> {
    const copies = this.#copier.copies.in(member).map(({ namespace }) => namespace);
    return new Set([...copies, ...this.#placements.namespacesIn(member.name)]);
  }

  #enqueue({ member: name, namespace }: PlaceInMember): void {
    const member = this.#options.registry.member(name);
    if (member !== undefined) this.#copier.enqueueNamespace(member, namespace);
    for (const policy of this.#copier.sources.inNamespace(KIND, namespace)) {
      this.#copier.enqueue({ member: name, ...this.#copier.nameOf(KIND, policy) });
    }
  }

  #wake(namespace: string): void {
    const { proxies, events } = this.#options;
    wakeWaiting(proxies.byIndex(NAMESPACE_INDEX, namespace), events);
  }

  #isUsed(member: Member, namespace: string): boolean {
    return member.delegates.liveIn(namespace) > 0 || this.#placements.any(member.name, namespace);
  }
}
