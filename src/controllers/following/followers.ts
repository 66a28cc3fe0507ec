import type { ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { type Needs, refusedIn } from "../../placement/needs.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import type { FollowedObjects } from "../../scheduling/followed-objects.ts";
import type { GroupName } from "../../scheduling/groups.ts";
import { type PodCopier, type PodCopierOptions, together, wakeWaiting } from "../copying/pod-copier.ts";
import type { Follower } from "./follower.ts";
import { MemberDevices } from "./member-devices.ts";

export type FollowersOptions = Pick<PodCopierOptions, "proxies" | "events" | "registry" | "clock" | "log">;

/** The controllers of all types whose objects follow pods. */
export class Followers implements PodCopier {
  readonly devices: MemberDevices;
  readonly #options: FollowersOptions;
  readonly #running = new Set<Follower>();
  #areTypesRead = false;

  constructor(options: FollowersOptions) {
    this.#options = options;
    this.devices = new MemberDevices({
      ...options,
      onRead: () => this.#wake([...this.#running].filter(({ usesDevices }) => usesDevices)),
    });
  }

  /** The DelegatedTypes are known, or cannot be read: until then no pod is given to a member. */
  onTypesRead(): void {
    if (this.#areTypesRead) return;
    this.#areTypesRead = true;
    const { proxies, events } = this.#options;
    wakeWaiting(proxies.list(), events);
  }

  add(follower: Follower): void {
    this.#running.add(follower);
    if (follower.usesDevices) this.devices.start();
    const { proxies, registry } = this.#options;
    const { copies } = follower;
    copies.onMembers();
    for (const object of proxies.list()) copies.onProxy({ type: "added", object });
    if (proxies.synced) for (const member of registry.members()) copies.onProxies(member);
    this.#onRules(follower);
  }

  remove(follower: Follower): void {
    this.#running.delete(follower);
    if (![...this.#running].some(({ usesDevices }) => usesDevices)) this.devices.stop();
    this.#onRules(follower);
  }

  get types(): FollowedObjects[] {
    return [...this.#running].map(({ objects }) => objects);
  }

  groupOf(pod: Pod): GroupName | undefined {
    for (const { objects } of this.#running) {
      const group = objects.groupOf(pod);
      if (group !== undefined) return group;
    }
    return undefined;
  }

  needs(proxy: Stored<Pod>): Needs | undefined {
    if (!this.#areTypesRead) return { state: "awaited" };
    for (const { objects } of this.#running) {
      const message = objects.withheld(proxy);
      if (message !== undefined) return { state: "missing", reason: "NotPlaced", message };
    }
    return this.#running.size === 0 ? undefined : this.#together().needs(proxy);
  }

  /** Says why a pod that is no proxy yet would wait in the member for what it names, as far as is known. */
  refusal(pod: Stored<Pod>, member: string): string | undefined {
    if (!this.#areTypesRead) return "DelegatedTypes have not been read yet";
    for (const { objects, copies } of this.#running) {
      if (objects.of(pod).length === 0) continue;
      const withheld = objects.withheld(pod);
      if (withheld !== undefined) return withheld;
      if (!copies.provides(pod, member)) return `an object of ${objects.type} that it names has not been read yet`;
      const refused = refusedIn(copies.needs(pod), member);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  prepare(key: ObjectKey, proxyUid: string, member: string): boolean {
    return this.#together().prepare(key, proxyUid, member);
  }

  onProxy(event: ReflectorEvent<Pod>): void {
    for (const { copies } of this.#running) copies.onProxy(event);
  }

  onProxies(member: Member): void {
    for (const { copies } of this.#running) copies.onProxies(member);
  }

  onMembers(): void {
    for (const { copies } of this.#running) copies.onMembers();
  }

  onConnection(member: Member): void {
    this.devices.onConnection(member);
    for (const { copies } of this.#running) copies.onConnection(member);
  }

  onEnded(member: Member, delegate: Stored<Pod>): void {
    for (const { copies } of this.#running) copies.onEnded(member, delegate);
  }

  /** Each follower is stopped by whoever added it. */
  stop(): Promise<void> {
    return Promise.resolve();
  }

  #together(): ReturnType<typeof together> {
    return together([...this.#running].map(({ copies }) => copies));
  }

  #onRules(changed: Follower): void {
    this.#options.events.emit("followRules");
    this.#wake([changed]);
  }

  /** Has pods that wait and name objects of these types decided on again. */
  #wake(followers: readonly Follower[]): void {
    const { proxies, events } = this.#options;
    const isConcerned = (proxy: Stored<Pod>): boolean => followers.some(({ objects }) => objects.of(proxy).length > 0);
    wakeWaiting(proxies.list().filter(isConcerned), events);
  }
}
