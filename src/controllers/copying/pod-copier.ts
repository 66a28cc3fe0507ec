import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Shard } from "../../api/shards.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { mergedNeeds } from "../../placement/needs.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import { isBound } from "../../pods/pod-state.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { ControllerEvents, Emitter } from "../events.ts";
import type { Preparer } from "../preparer.ts";

export interface PodCopierOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  /** Objects without a namespace are left to the first shard. */
  readonly shard: Shard;
  readonly registry: Pick<Registry, "member" | "members">;
  readonly memberNamespaces: Pick<MemberNamespaces, "createIn">;
  readonly recorder: Pick<EventRecorder, "record">;
  /** The host's proxies. */
  readonly proxies: ReadStore<Pod>;
  readonly events: Emitter;
}

/** Returns the proxy of this uid while it is not bound: only then its member is prepared for it. */
export function unboundProxy(proxies: ReadStore<Pod>, key: ObjectKey, uid: string): Stored<Pod> | undefined {
  const proxy = proxies.get(key);
  return proxy?.metadata.uid === uid && !isBound(proxy) ? proxy : undefined;
}

/** Has those of the proxies that wait for a member decided on again. Bound ones look again by themselves. */
export function wakeWaiting(proxies: readonly Stored<Pod>[], events: Emitter): void {
  for (const proxy of proxies) if (!isBound(proxy)) events.emit("needs", objectKey(proxy.metadata));
}

/** A controller that gives members the objects that pods need. */
export interface PodCopier extends Preparer {
  onProxy(event: ReflectorEvent<Pod>): void;
  onMembers(): void;
  onConnection(member: Member): void;
  /** The host's proxies were read, so the users in the member are known. */
  onProxies?(member: Member): void;
  onDelegate?(member: Member, key: ObjectKey): void;
  onEnded?(member: Member, delegate: Stored<Pod>): void;
  stop(): Promise<void>;
}

export function subscribe(copier: PodCopier, events: Events<ControllerEvents>): void {
  events.on("proxy", (event) => copier.onProxy(event));
  // A thousand Clusters come at once, and each copier looks at all members.
  events.onAny(["cluster"], () => copier.onMembers());
  events.on("connection", (member) => copier.onConnection(member));
  if (copier.onDelegate !== undefined) events.on("delegate", (member, key) => copier.onDelegate?.(member, key));
  if (copier.onEnded !== undefined) events.on("ended", (member, delegate) => copier.onEnded?.(member, delegate));
}

/** A pod has what it needs when each controller says so. */
export function together(all: readonly Preparer[]): Preparer {
  return {
    needs: (proxy) => mergedNeeds(all.flatMap((one) => one.needs(proxy) ?? [])),
    prepare: (key, proxyUid, member) => all.map((one) => one.prepare(key, proxyUid, member)).every(Boolean),
    onMissing: (delegate, member, kind) => all.map((one) => one.onMissing?.(delegate, member, kind)).includes(true),
  };
}
