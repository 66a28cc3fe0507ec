import type { KubeObject, ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import { isFirst } from "../../api/shards.ts";
import type { Member } from "../../clusters/member.ts";
import { notReadYet } from "../../clusters/readiness.ts";
import type { DependencyKind } from "../../copies/dependencies.ts";
import { NEEDED } from "../../copies/foreign-message.ts";
import { type Dependency, dependencyKey } from "../../copies/named-by-pods.ts";
import { isWantedInMembers } from "../../copies/objects.ts";
import { ObjectsInMembers } from "../../copies/objects-in-members.ts";
import type { Source } from "../../copies/source.ts";
import { isPreparedIn, leastPrepared, type Needs, type Preparation, type WaitReason } from "../../placement/needs.ts";
import { isBound, isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import { Copier } from "../copying/copier.ts";
import type { CopyRef, ObjectName, Use } from "../copying/model.ts";
import { type PodCopier, type PodCopierOptions, unboundProxy } from "../copying/pod-copier.ts";
import { type Family, isSelected } from "./family.ts";
import { isUsedByOthers, Users } from "./users.ts";

export interface DependencyOptions<T extends KubeObject> extends PodCopierOptions {
  readonly family: Family<T>;
  readonly onChange?: (name: ObjectName) => void;
  /** Called when `failures` and `membersBeingRead` may have another answer. */
  readonly onState?: () => void;
}

interface Named {
  /** Members that pods of other groups confine an object to, and the reason to tell in all others. */
  readonly homes: readonly { readonly members: readonly string[]; readonly message: string }[];
  readonly existing: readonly Dependency[];
  /** Optional objects that the host lacks. */
  readonly gone: readonly Dependency[];
}

// The watch shows a delegate by then, or it was not made.
const PLACED_LATELY_MS = 10_000;
const KEPT_FOR_OTHERS_MS = 10 * 60_000;

/** Gives each member the objects of one family that its pods name: one copy for all pods that share it. */
export class DependencyController<T extends KubeObject> implements PodCopier {
  readonly #options: DependencyOptions<T>;
  readonly #copier: Copier<T>;
  readonly #users: Users;
  /** A member has one copy of a whole object, its pods' too. */
  readonly #wholeObjects = new ObjectsInMembers<T>();

  /** The members' Clusters as they were last looked at. */
  readonly #specs = new WeakMap<Member, object>();
  #isStopped = false;

  constructor(options: DependencyOptions<T>) {
    this.#options = options;
    const { family, identity, shard, proxies } = options;
    this.#users = new Users(proxies, family.of);
    this.#copier = new Copier<T>({
      ...options,
      name: family.name,
      kinds: family.kinds,
      perNamespace: true,
      areKindsIndependent: true,
      clause: NEEDED,
      beforeDelete: async (member, ref, { signal }) =>
        // Every shard gives members classes, and the first takes them away.
        this.areClasses &&
        (!isFirst(shard) || (await isUsedByOthers(member, ref, { hostId: identity.id, shard }, signal)))
          ? KEPT_FOR_OTHERS_MS
          : undefined,
      users: {
        areKnown: () => proxies.synced,
        use: (member, ref, source) => this.#use(member, ref, source),
        anyNeeds: (kind, namespace) => this.#users.anyIn(kind, namespace),
        sourceFor: (member, _ref, source) => this.#sourceFor(member, source),
        onCopy: (_member, name) => this.#onChange(name),
        onSource: (kind, { metadata: { namespace = "", name } }) => this.#onChange({ kind, namespace, name }),
        onSources: (kind, namespace) => {
          for (const dependency of this.#users.wantedIn(kind, namespace)) {
            this.#copier.enqueueConcerned(dependency);
            this.#wake(dependency);
          }
          options.onState?.();
        },
        onMember: (member) => {
          for (const ref of this.#users.placedIn(member.name)) {
            this.#copier.enqueue(ref);
            this.#wake(ref);
          }
          for (const delegate of member.delegates.list()) this.onEnded(member, delegate);
        },
        onRead: () => options.events.emit("copiesRead"),
        onMemberState: () => options.onState?.(),
      },
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#copier.stop();
    this.#users.stop(this.#options.registry.members());
  }

  onProxies(member: Member): void {
    this.#copier.onMember(member);
  }

  onMembers(): void {
    if (this.#isStopped) return;
    this.#copier.onMembers();
    const { registry, family } = this.#options;
    if (family.selector === undefined) return;
    // The operator may have changed which classes members are given.
    for (const { kind } of family.kinds.map(({ resource }) => resource)) {
      if (this.#isActive() && this.#users.anyIn(kind, "")) this.#copier.sources.need(kind, "");
    }
    for (const member of registry.members()) {
      const { spec } = member.cluster;
      if (this.#specs.get(member) === spec) continue;
      this.#specs.set(member, spec);
      this.#copier.onMember(member);
    }
  }

  onConnection(member: Member): void {
    if (member.reachable) this.#copier.onMember(member);
  }

  onProxy(event: ReflectorEvent<Pod>): void {
    const { object: proxy, type } = event;
    const { of, groupOf } = this.#options.family;
    const [named, before] = [of(proxy), event.type === "updated" ? of(event.previous) : []];
    if (this.#isStopped || (named.length === 0 && before.length === 0)) return;
    // A pod that ended mounts nothing any more, however long it stays.
    const isOver = type === "deleted" || isTerminal(proxy);
    const keys = new Set(named.map(dependencyKey));
    // Labels and annotations change.
    const dropped = before.filter((one) => !keys.has(dependencyKey(one)));
    for (const dependency of isOver ? [...named, ...dropped] : dropped) {
      this.#copier.sources.release(dependency.kind, dependency.namespace);
      // Other members may be free to have it now.
      if (groupOf !== undefined) this.#onChange(dependency);
    }
    if (!isOver && this.#isActive()) {
      for (const { kind, namespace } of named) this.#copier.sources.need(kind, namespace);
    }
    if (!isOver && !isBound(proxy) && dropped.length === 0) return;
    for (const ref of this.#users.forget(proxy.metadata.uid)) this.#copier.enqueue(ref);
    const uses = (pod: Pod): string => this.#users.usesOf(pod).join();
    if (event.type === "updated" && uses(event.previous) === uses(proxy)) return;
    const member = memberOf(proxy);
    if (member === undefined) return;
    for (const dependency of [...named, ...dropped]) this.#copier.enqueue({ ...dependency, member });
  }

  onEnded(member: Member, delegate: Stored<Pod>): void {
    for (const dependency of this.#options.family.of(delegate)) {
      this.#copier.enqueue({ ...dependency, member: member.name });
    }
  }

  needs(proxy: Stored<Pod>): Needs | undefined {
    const dependencies = this.#options.family.of(proxy);
    if (dependencies.length === 0 || !this.#isActive()) return undefined;
    const existing: Dependency[] = [];
    const gone: Dependency[] = [];
    let isRead = true;
    let unreadable: WaitReason | undefined;
    let missing: WaitReason | undefined;
    for (const dependency of dependencies) {
      const source = this.#copier.sources.of(dependency);
      const obstacle = source.state === "present" ? this.#options.family.obstacle?.(source.object) : undefined;
      if (obstacle !== undefined) {
        const { kind, name } = dependency;
        missing ??= { reason: "NotPlaced", message: `${kind} ${JSON.stringify(name)} ${obstacle}` };
      } else if (source.state === "present") existing.push(dependency);
      else if (source.state === "missing" && this.areClasses) continue;
      else if (source.state === "missing" && dependency.optional) gone.push(dependency);
      else if (source.state === "missing") missing ??= dependency.missing;
      else {
        isRead = false;
        if (source.message !== undefined) unreadable ??= { reason: "FailedMount", message: source.message };
      }
    }
    const why = unreadable ?? missing;
    if (why !== undefined) return { state: "missing", ...why };
    if (!isRead) return { state: "awaited" };
    // The same for each member that is asked about.
    const homes = this.#homesOf(proxy, existing);
    return { state: "there", in: (member) => this.#preparation(member, { homes, existing, gone }) };
  }

  prepare(key: ObjectKey, proxyUid: string, member: string): boolean {
    const proxy = unboundProxy(this.#options.proxies, key, proxyUid);
    if (proxy === undefined) return true;
    const dependencies = this.#options.family.of(proxy);
    if (dependencies.length === 0 || !this.#isActive()) return true;
    // A member that may prove unfit gets no copies yet.
    const asked = this.#options.registry.member(member);
    if (asked !== undefined && this.#fitOf(asked, dependencies) !== "prepared") return false;
    for (const ref of this.#users.place(proxy, member, this.#options.clock.now())) this.#copier.enqueue(ref);
    return isPreparedIn(this.needs(proxy), member);
  }

  /** Copies the host's object, since the member's own, which was used in place, is gone. */
  onMissing(delegate: Pod, name: string, kind: DependencyKind): boolean {
    const member = this.#options.registry.member(name);
    let isThere = false;
    for (const dependency of this.#options.family.of(delegate)) {
      if (dependency.kind !== kind || member === undefined) continue;
      const { exists, refusal } = this.#copier.standing(member, dependency);
      isThere ||= this.areClasses && exists;
      if (refusal?.inPlace !== true) continue;
      this.#copier.reconsider({ ...dependency, member: name });
      this.#wake(dependency);
    }
    return isThere;
  }

  /** The member will have it before the delegate. */
  provides(pod: Pod, name: string): boolean {
    const member = this.#options.registry.member(name);
    if (member === undefined || !this.#isActive()) return false;
    const dependencies = this.#options.family.of(pod);
    for (const { kind, namespace } of dependencies) this.#copier.sources.need(kind, namespace);
    return dependencies.every((one) => this.#copier.sourceFor(member, one).state === "present");
  }

  /** The family's kinds are classes. */
  get areClasses(): boolean {
    return this.#options.family.selector !== undefined;
  }

  sourceOf(name: ObjectName): Source<T> {
    return this.#copier.sources.of(name);
  }

  /** Returns the member where pods use the object. If several do, the first has a copy. */
  userOf(name: ObjectName): { readonly member: Member; readonly copy: Stored<T> | undefined } | undefined {
    const { kind, namespace, name: copyName } = name;
    const members = this.#options.registry.members().filter((one) => this.#users.uses(one, dependencyKey(name)));
    const found = members.map((member) => ({
      member,
      copy: this.#copier.copies.of(member, kind, namespace, copyName),
    }));
    return found.find(({ copy }) => copy !== undefined) ?? found[0];
  }

  /** Reports whether an unfinished proxy names the object. True until all are known. */
  isNamed(name: ObjectName): boolean {
    return !this.#options.proxies.synced || this.#users.isNamed(name);
  }

  /** Returns the objects of the host that pods name. */
  named(): readonly Stored<T>[] {
    return this.#users.named().flatMap((ref) => {
      const source = this.#copier.sources.of(ref);
      return source.state === "present" ? [source.object] : [];
    });
  }

  /** Returns why objects cannot be read on the host, or in members. */
  failures(): readonly string[] {
    return [...this.#copier.sources.failures(), ...this.#copier.copies.failures(this.#options.registry.members())];
  }

  membersBeingRead(): readonly string[] {
    return this.#copier.copies.beingRead(this.#options.registry.members());
  }

  /** Reports whether any member is given objects of these kinds: otherwise the host's are not even read. */
  #isActive(): boolean {
    const { selector } = this.#options.family;
    if (selector === undefined) return true;
    return this.#options.registry.members().some(({ cluster }) => selector(cluster.spec) !== undefined);
  }

  #sourceFor(member: Member, source: Source<T>): Source<T> {
    const { family } = this.#options;
    if (source.state !== "present") return source;
    const { object } = source;
    if (family.selector !== undefined && !isSelected(family, member.cluster.spec, object)) return { state: "missing" };
    // A claim may be made anew with a spec that no member is given: its copy stays as it is.
    if (family.obstacle?.(object) !== undefined) return { state: "missing" };
    return isWantedInMembers(object) ? this.#wholeObjects.of(object, member.candidate()) : source;
  }

  /** Running pods keep, as on a node, a deleted object that they cannot do without. */
  #use(member: Member, ref: CopyRef, source: Source<T>): Use {
    const key = dependencyKey(ref);
    const isMounted = this.#users.isMounted(member, key);
    // The kubelet looks a RuntimeClass up whenever it makes a pod's sandbox.
    const preventsReplacement = isMounted && this.areClasses;
    const isUsed = this.#users.uses(member, key);
    if (!isUsed) return { demand: isMounted ? "frozen" : "unused", outlivesSource: true, preventsReplacement };
    const outlivesSource = source.state === "missing" && this.#users.requires(member, key);
    return { demand: "needed", outlivesSource, preventsReplacement };
  }

  #preparation(name: string, { homes, existing, gone }: Named): Preparation {
    const member = this.#options.registry.member(name);
    if (member === undefined) return "unprepared";
    const elsewhere = homes.find(({ members }) => !members.includes(name));
    if (elsewhere !== undefined) return { refused: elsewhere.message };
    const fit = this.#fitOf(member, existing);
    if (fit !== "prepared") return fit;
    const dependencies = existing.filter((one) => this.#copier.sourceFor(member, one).state !== "missing");
    if (dependencies.length === 0 && gone.length === 0) return "prepared";
    // An earlier version of Legation may have been given no access to a kind that this pod does not need.
    const kinds = [...dependencies, ...gone].map(({ kind }) => kind);
    if (!this.#copier.copies.read(member, kinds)) return { refused: notReadYet(this.#options.family.title) };
    let preparation: Preparation = "prepared";
    // A pod must not mount the copy of a deleted object, which is on its way out.
    for (const dependency of gone) {
      const { exists } = this.#copier.standing(member, dependency);
      if (exists && !this.#users.requires(member, dependencyKey(dependency))) preparation = "unprepared";
    }
    for (const dependency of dependencies) {
      const answer = this.#preparationFor(member, dependency);
      if (typeof answer === "object") return answer;
      if (answer === "unprepared") preparation = answer;
    }
    return preparation;
  }

  /** Returns where pods of other groups keep objects of a type that confines: a pod's group is that of one of its objects. */
  #homesOf(proxy: Stored<Pod>, existing: readonly Dependency[]): Named["homes"] {
    const { groupOf } = this.#options.family;
    if (groupOf === undefined) return [];
    const members = this.#options.registry.members();
    const since = this.#options.clock.now() - PLACED_LATELY_MS;
    const group = groupOf(proxy);
    // The pods of a group move together, as their leader does.
    const isOther = (pod: Stored<Pod>): boolean =>
      pod.metadata.uid !== proxy.metadata.uid && (group === undefined || groupOf(pod) !== group);
    return existing.flatMap((dependency) => {
      const key = dependencyKey(dependency);
      const users = members.filter((member) => this.#users.isUsedBy(member, key, { isOther, since }));
      const names = users.map((member) => member.name);
      const message = `${dependency.kind} ${dependency.name}${NEEDED}, is in use in ${names.join(", ")}`;
      return names.length === 0 ? [] : [{ members: names, message }];
    });
  }

  /** Reports whether the member has what is needed there beside the copies. */
  #fitOf(member: Member, existing: readonly Dependency[]): Preparation {
    const { preparationIn } = this.#options.family;
    if (preparationIn === undefined) return "prepared";
    const sources = existing.map((dependency) => this.#copier.sources.of(dependency));
    return leastPrepared(
      sources.flatMap((source) => (source.state === "present" ? [preparationIn(member, source.object)] : [])),
    );
  }

  #preparationFor(member: Member, dependency: Dependency): Preparation {
    const { kind, name } = dependency;
    const source = this.#copier.sourceFor(member, dependency);
    if (source.state === "unknown" && source.message !== undefined) {
      return { refused: `${kind} ${name}${NEEDED}: ${source.message}` };
    }
    const { exists, stays, ofSource, drift, refusal, held, keptForOthers } = this.#copier.standing(member, dependency);
    // A refused change of its other fields does not matter.
    if (stays && (drift === "none" || drift === "metadata")) return "prepared";
    // The member's controllers want the copy as it is.
    if (stays && ofSource && (held === "Undone" || held === "NoEffect")) return "prepared";
    if (refusal?.inPlace === true) return "prepared";
    if (refusal !== undefined) return { refused: refusal.message };
    const isHeldByUsers = keptForOthers || this.#users.isMounted(member, dependencyKey(dependency));
    if (this.areClasses && drift === "immutable" && isHeldByUsers) {
      return {
        refused: `${kind} ${name} there is as it was before it changed on the host, and is replaced when no pod of it is left`,
      };
    }
    if (!exists && held === "Undone") {
      return { refused: `another client there keeps deleting ${kind} ${name}${NEEDED}` };
    }
    return "unprepared";
  }

  #onChange(name: ObjectName): void {
    this.#wake(name);
    this.#options.onChange?.(name);
  }

  #wake(name: ObjectName): void {
    for (const proxy of this.#users.waitingFor(dependencyKey(name))) this.#options.events.emit("needs", proxy);
  }
}
