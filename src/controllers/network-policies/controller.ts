import { type NetworkPolicy, type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { hasRulesOf, policyCopyName, staysOnHost } from "../../copies/network-policies.ts";
import { networkPolicies } from "../../kube/resources.ts";
import { isBound, isTerminal } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { Controller } from "../../runtime/controller.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import { Copies } from "../copying/copies.ts";
import { IdleTimes } from "../copying/idle.ts";
import type { Copier, CopyingOptions } from "../copying/options.ts";
import { Placements } from "../copying/placements.ts";
import { isPrepared, type Needs, type Readiness, refusedIn } from "../delegation/model/needs.ts";
import { NAMESPACE_INDEX } from "../delegation/placement/placement-rules.ts";
import { inWords } from "../told-for.ts";
import { decide } from "./decide.ts";
import { Executor } from "./execute.ts";
import { type Action, type Observed, type Place, type PlaceKey, placeKey, placeOf } from "./model.ts";

export interface NetworkPolicyOptions extends CopyingOptions {
  /** A member's copies have been read: it can be given pods of namespaces that have policies. */
  readonly onRead: () => void;
}

const KIND = "NetworkPolicy";
// A watch that is cut comes back within seconds; one that cannot may miss rules for as long as it likes.
const STALE_AFTER_MS = 60_000;
const UNREAD =
  "its NetworkPolicies cannot be read yet; if this lasts, let it join again, since the access that an earlier version of " +
  "Legation was given does not include them";

/**
 * Keeps in each member, for the delegates there, the NetworkPolicies of their namespaces: a pod is under the same rules wherever it
 * runs, and starts nowhere before them.
 */
export class NetworkPolicyController implements Copier {
  readonly #options: NetworkPolicyOptions;
  readonly #sources: Reflector<NetworkPolicy>;
  readonly #copies: Copies<typeof KIND, NetworkPolicy>;
  readonly #executor: Executor;
  readonly #loop: Controller<PlaceKey, Observed, Action>;
  /** Pods that are in a member, or on their way there. */
  readonly #placements = new Placements();
  /** Whether pods may start in a place, as those that wait were last told. */
  readonly #assessed = new Map<PlaceKey, string>();
  readonly #idle: IdleTimes<PlaceKey>;

  constructor(options: NetworkPolicyOptions) {
    this.#options = options;
    const { host, identity, registry, memberNamespaces, recorder, clock, log } = options;
    this.#idle = new IdleTimes(clock);
    this.#sources = new Reflector<NetworkPolicy>({
      client: host,
      resource: networkPolicies,
      indexes: { [NAMESPACE_INDEX]: ({ metadata: { namespace = "" } }) => [namespace] },
      clock,
      log,
      onEvent: ({ object }) => this.#onSource(object.metadata.namespace ?? ""),
      onState: (state) => {
        if (state === "watching") this.#onSourcesRead();
        if (state === "backing-off") this.#wakeAll();
      },
    });
    this.#copies = new Copies<typeof KIND, NetworkPolicy>({
      hostId: identity.id,
      resources: new Map([[KIND, networkPolicies]]),
      unowned: true,
      transform: (_kind, policy) => policy,
      onCopy: ({ name: member }, { namespace }) => {
        this.#enqueue({ member, namespace });
        this.#reassess({ member, namespace });
      },
      onState: (member) => {
        for (const namespace of this.#namespacesOf(member)) this.#reassess({ member: member.name, namespace });
        // Of other namespaces, pods may have been told that it cannot be read.
        if (this.#copies.isCurrent(member)) options.onRead();
      },
      onRead: (member) => {
        this.#onRead(member);
        options.onRead();
      },
      clock,
      log,
    });
    this.#executor = new Executor({
      recorder,
      registry,
      memberNamespaces,
      hostId: identity.id,
      onRefusal: (place) => this.#reassess(place),
      clock,
    });
    this.#loop = new Controller<PlaceKey, Observed, Action>(
      {
        name: "network-policies",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#executor.execute(action, context),
      },
      options,
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sources.stop(), this.#copies.stop()]);
    await this.#loop.stop();
  }

  /** The host's proxies have been read: who is in a member is known. */
  onProxies(member: Member): void {
    this.#onRead(member);
  }

  /** Members were connected, or left. */
  onMembers(): void {
    const { registry } = this.#options;
    this.#copies.follow(registry.members());
    const hasLeft = (key: PlaceKey): boolean => registry.member(placeOf(key).member) === undefined;
    // Not all of these have been looked at.
    for (const key of this.#assessed.keys()) if (hasLeft(key)) this.#assessed.delete(key);
    this.#loop.enqueueKnown(hasLeft);
  }

  /** A member was lost or found again. */
  onConnection(member: Member): void {
    if (member.reachable) this.#onRead(member);
  }

  /** A delegate has ended or gone: its namespace may be of no use there any more. */
  onEnded({ name: member }: Member, { metadata: { namespace = "" } }: Stored<Pod>): void {
    this.#enqueue({ member, namespace });
  }

  /** A proxy came, changed or went. */
  onProxy({ type, object: proxy }: ReflectorEvent<Pod>): void {
    this.#sources.start();
    const member = memberOf(proxy);
    if (type !== "deleted" && !isTerminal(proxy)) {
      if (member !== undefined) this.#place(proxy, member);
      return;
    }
    const left = this.#placements.forget(proxy.metadata.uid);
    if (left !== undefined) this.#enqueue(left);
  }

  /** The policies that a proxy must find in its member, and who has them; undefined when there are none. */
  needs({ metadata: { namespace = "" } }: Stored<Pod>): Needs | undefined {
    const sources = this.#sourcesIn(namespace);
    if (sources?.length === 0) return undefined;
    if (sources !== undefined)
      return { state: "there", in: (member) => this.#readiness({ member, namespace }, sources) };
    const { state, failing } = this.#sources;
    if (state !== "backing-off") return { state: "awaited" };
    const message = `networkpolicies cannot be read on the host: ${failing?.reason ?? "not yet"}; if it is for want of access, run \`legation install\` again`;
    return { state: "missing", reason: "NetworkNotReady", message };
  }

  /** Why the member cannot have them, as far as is known before the pod is given to it. */
  refusal(pod: Stored<Pod>, member: string): string | undefined {
    this.#sources.start();
    return refusedIn(this.needs(pod), member);
  }

  /** Has them made in the member; true when they are there. */
  prepare(key: ObjectKey, proxyUid: string, member: string): boolean {
    const proxy = this.#options.proxies().get(key);
    if (proxy === undefined || proxy.metadata.uid !== proxyUid || isBound(proxy)) return true;
    this.#place(proxy, member);
    return isPrepared(this.needs(proxy), member);
  }

  /** Nothing is started before it is under the rules that it would be under here. */
  #readiness(place: Place, sources: readonly Stored<NetworkPolicy>[]): Readiness {
    const { registry, identity } = this.#options;
    const member = registry.member(place.member);
    if (member === undefined) return "unprepared";
    if (!this.#copies.read(member)) return { refused: UNREAD };
    // What is shown may be gone: with its namespace, say.
    if (!this.#copies.isCurrent(member)) {
      const reason = this.#copies.failing(member);
      return reason === undefined ? "unprepared" : { refused: `its NetworkPolicies cannot be read: ${reason}` };
    }
    let readiness: Readiness = "ready";
    for (const source of sources) {
      const { name } = source.metadata;
      const copy = this.#copies.of(member, KIND, place.namespace, policyCopyName(source, identity.id));
      const there = copy?.metadata.deletionTimestamp === undefined ? copy : undefined;
      const stays = there !== undefined && !this.#executor.isLeaving(place, there);
      if (stays && hasRulesOf(there, source, identity)) continue;
      const refusal = this.#executor.refusal(place, source);
      if (refusal !== undefined) return { refused: refusal };
      if (this.#executor.contestedUntil(place, source) !== undefined) {
        return { refused: `somebody there keeps changing or deleting its copy of NetworkPolicy ${name}` };
      }
      readiness = "unprepared";
    }
    return readiness;
  }

  /** Those that wait look again when their answer is another. */
  #reassess(place: Place): void {
    const key = placeKey(place);
    const sources = this.#sourcesIn(place.namespace);
    if (sources?.length === 0) return;
    const answer = sources === undefined ? "unread" : inWords(JSON.stringify(this.#readiness(place, sources)));
    if (this.#assessed.get(key) === answer) return;
    this.#assessed.set(key, answer);
    this.#wake(place.namespace);
  }

  #place(proxy: Stored<Pod>, member: string): void {
    const { uid, namespace = "" } = proxy.metadata;
    const from = this.#placements.memberOf(uid);
    if (!this.#placements.place(proxy, member)) return;
    if (from !== undefined && from !== member) this.#enqueue({ member: from, namespace });
    this.#enqueue({ member, namespace });
  }

  #onSource(namespace: string): void {
    for (const member of this.#options.registry.members()) {
      const place = { member: member.name, namespace };
      const key = placeKey(place);
      this.#assessed.delete(key);
      // A host has many namespaces, and many members: only what is there, or remembered, is looked at.
      if (this.#isUsed(member, namespace) || this.#loop.knows(key)) this.#enqueue(place);
    }
    this.#wake(namespace);
  }

  #onSourcesRead(): void {
    for (const member of this.#options.registry.members()) this.#onRead(member);
    this.#wakeAll();
  }

  #onRead(member: Member): void {
    if (!this.#copies.read(member)) return;
    const pods = [...member.delegates.list()].map(({ metadata }) => metadata.namespace ?? "");
    for (const namespace of new Set([...pods, ...this.#namespacesOf(member)])) {
      this.#enqueue({ member: member.name, namespace });
    }
  }

  /** The namespaces of which the member has copies, or pods that this controller knows of. */
  #namespacesOf(member: Member): ReadonlySet<string> {
    const copies = this.#copies.in(member).map(({ namespace }) => namespace);
    return new Set([...copies, ...this.#placements.namespacesIn(member.name)]);
  }

  #wake(namespace: string): void {
    this.#tell(this.#options.proxies().byIndex(NAMESPACE_INDEX, namespace));
  }

  #wakeAll(): void {
    this.#tell(this.#options.proxies().list());
  }

  /** Those that have a node look again by themselves. */
  #tell(proxies: readonly Stored<Pod>[]): void {
    for (const proxy of proxies) if (!isBound(proxy)) this.#options.onProxy(objectKey(proxy.metadata));
  }

  #isUsed(member: Member, namespace: string): boolean {
    return member.delegates.liveIn(namespace) > 0 || this.#placements.any(member.name, namespace);
  }

  #enqueue(place: Place): void {
    this.#loop.enqueue(placeKey(place));
  }

  /** The host's policies of the namespace that members get; undefined before they have been read. */
  #sourcesIn(namespace: string): Stored<NetworkPolicy>[] | undefined {
    const { store, failing } = this.#sources;
    const isStale = failing !== undefined && this.#options.clock.now() - failing.since > STALE_AFTER_MS;
    if (!store.synced || isStale) return undefined;
    return store.byIndex(NAMESPACE_INDEX, namespace).filter((policy) => !staysOnHost(policy));
  }

  #observe(key: PlaceKey): Observed | undefined {
    const { registry, proxies, identity } = this.#options;
    const place = placeOf(key);
    const { namespace } = place;
    const member = registry.member(place.member);
    if (member === undefined) return this.#forget(key);
    // Before the host's proxies are known, nobody would seem to be anywhere.
    if (!proxies().synced) return undefined;
    const copies = this.#copies
      .inNamespace(member, KIND, namespace)
      .flatMap(({ name }) => this.#copies.of(member, KIND, namespace, name) ?? []);
    const used = this.#isUsed(member, namespace);
    const refusedUntil = this.#executor.refusedUntil(place);
    if (copies.length === 0 && !used && refusedUntil === undefined) {
      this.#forget(key);
      // What pods were told, that somebody there keeps deleting copies, say, is forgotten with it.
      if (this.#assessed.delete(key)) this.#wake(namespace);
      return undefined;
    }
    const sources = this.#sourcesIn(namespace);
    if (sources !== undefined) this.#executor.noteSources(place, sources);
    return {
      place,
      host: identity,
      usable: member.reachable && member.read && this.#copies.read(member),
      ...(sources === undefined ? {} : { sources }),
      copies,
      leaving: this.#executor.leaving(place, copies),
      used,
      idleSince: this.#idle.note(key, used),
      ...(refusedUntil === undefined ? {} : { refusedUntil }),
      restsUntil: (source) => this.#executor.restsUntil(place, source),
    };
  }

  #forget(key: PlaceKey): undefined {
    this.#idle.forget(key);
    this.#executor.forget(placeOf(key));
  }
}
