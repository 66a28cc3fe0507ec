import { CLUSTER_ANNOTATION, PROXY_LABEL, PROXY_LABEL_VALUE, virtualNodeName } from "../../api/keys.ts";
import { type ObjectKey, type ObjectMeta, objectRef, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import { isClass } from "../../copies/named-by-pods.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { pods } from "../../kube/resources.ts";
import type { Refusal } from "../../placement/candidate.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isBound } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, ControllerOptions, Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { NOT_OVERFLOWED } from "../../scheduling/overflow-reasons.ts";
import { lackedKind } from "../api-refusal.ts";
import type { ControllerEvents } from "../events.ts";
import { tryDelegate } from "../try-delegate.ts";
import type { UnmarkedPods } from "./binding-labels.ts";
import type { HostGroups } from "./host-groups.ts";
import { dependencyRefusal, dryRunRefusal, type NotTaken } from "./member-refusal.ts";
import type { Action, Observed } from "./model.ts";
import type { OverflowPlacement } from "./placement.ts";

type Context = ActionContext<ObjectKey>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

export interface OverflowOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "clusters" | "member">;
  readonly events: Events<ControllerEvents>;
  readonly placement: OverflowPlacement;
  readonly recorder: Pick<EventRecorder, "record">;
  /** Returns why a member cannot have the network policies that hold for a pod here, or the objects that follow it, as far as is known. */
  readonly copyRefusal: (pod: Stored<Pod>, member: string) => string | undefined;
  readonly providesClasses: (delegate: Pod, member: string) => boolean;
}

interface ExecutorOptions
  extends Pick<OverflowOptions, "host" | "identity" | "recorder" | "copyRefusal" | "providesClasses"> {
  readonly registry: Pick<Registry, "member">;
  readonly placement: Pick<
    OverflowPlacement,
    "delegateIn" | "reserve" | "giveUp" | "leave" | "acceptedBy" | "noteStored" | "refusedBy"
  >;
  readonly clock: Pick<Clock, "wall">;
  readonly podOf: (key: ObjectKey) => Stored<Pod> | undefined;
  readonly groups: Pick<HostGroups, "read">;
  readonly unmarked: UnmarkedPods;
  readonly onReported: (uid: string) => void;
  readonly onRoom: () => void;
}

/** Carries out the overflow controller's writes: Bindings to virtual nodes, marks and events. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #under = new Map<ObjectKey, string>();
  /** Epoch ms by the machine's clock. */
  readonly #startedAt: number;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#startedAt = options.clock.wall();
  }

  bindingTo(member: string): number {
    const under = [...this.#under].flatMap(([key, name]) => (name === member ? [key] : []));
    return new Set([...under, ...this.#options.unmarked.on(member)]).size;
  }

  execute(action: Action, context: Context): Promise<Expectation<Observed> | undefined> {
    switch (action.type) {
      case "overflow":
        return this.#overflow(action, context);
      case "mark":
        return this.#mark(action, context);
      case "readHostGroups":
        return this.#readHostGroups(context);
      case "tell":
        return Promise.resolve(this.#tell(action, context));
    }
  }

  async #readHostGroups({ key, signal }: Context): Promise<Expectation<Observed>> {
    await this.#options.groups.read(objectRef(key).namespace ?? "", signal);
    return () => true;
  }

  async #overflow(action: ActionOf<"overflow">, context: Context): Promise<Expectation<Observed> | undefined> {
    const { host, identity, registry, placement, podOf } = this.#options;
    const { member: name, uid, resourceVersion } = action;
    const member = registry.member(name);
    const pod = podOf(context.key);
    if (member === undefined || pod?.metadata.uid !== uid) return () => true;
    const delegate = placement.delegateIn(pod, member);
    if (!placement.reserve(pod, name, delegate)) return () => true;
    let bound = false;
    this.#under.set(context.key, name);
    try {
      const { signal } = context;
      // After the Binding no other member is tried.
      const tried = await this.#dryRun(member, pod, delegate, context);
      // The pod is ranked anew by what the member would make of it.
      if (tried === "no room") return () => true;
      const notTaken =
        tried ??
        ofAllAlike(await dependencyRefusal(pod, { host, hostId: identity.id, member, signal })) ??
        ofAllAlike(this.#copyRefusal(pod, name));
      if (notTaken !== undefined) {
        placement.refusedBy(pod, notTaken.refusal, notTaken.sharedBy);
        return () => true;
      }
      if (placement.acceptedBy(pod, name)) this.#options.onRoom();
      // The virtual node is about to go, or is another cluster's by now.
      if (registry.member(name) !== member || member.cluster.metadata.deletionTimestamp !== undefined) {
        return () => true;
      }
      bound = await this.#bind(pod, action, context);
    } finally {
      this.#under.delete(context.key);
      if (!bound) {
        placement.giveUp(uid, name);
        // The reserved room is free for others.
        this.#options.onRoom();
        // The pod went while room was reserved for it.
        if (podOf(context.key)?.metadata.uid !== uid) placement.leave(uid);
      }
    }
    const left = hasLeft(uid);
    if (!bound) return (shown) => left(shown) || shown.pod.metadata.resourceVersion !== resourceVersion;
    context.log.info({ member: name }, "overflowed");
    const message = `this cluster has found no node for the pod, so it is delegated to ${name}`;
    const { recorder } = this.#options;
    recorder.record({ ...objectRef(context.key), uid }, { reason: "Overflowed", type: "Normal", message });
    return left;
  }

  /** A dry run stores nothing, so a crash leaves nothing behind. */
  async #dryRun(
    member: Member,
    pod: Stored<Pod>,
    delegate: Pod,
    { signal }: Context,
  ): Promise<NotTaken | "no room" | undefined> {
    try {
      const stored = await member.answerOf(tryDelegate(member, delegate, signal));
      return this.#options.placement.noteStored(pod, member, { sent: delegate, stored }) ? undefined : "no room";
    } catch (error) {
      member.noteFailure(error);
      const kind = lackedKind(error);
      if (kind !== undefined && isClass(kind) && this.#options.providesClasses(delegate, member.name)) return undefined;
      return dryRunRefusal(member.name, error, member.cluster.spec.createNamespaces !== false);
    }
  }

  #copyRefusal(pod: Stored<Pod>, cluster: string): Refusal | undefined {
    const message = this.#options.copyRefusal(pod, cluster);
    return message === undefined ? undefined : { cluster, reason: "RefusedByMember", message };
  }

  /** Returns false if the host's scheduler was faster. */
  async #bind(
    pod: Stored<Pod>,
    { uid, resourceVersion, member }: ActionOf<"overflow">,
    { key, signal }: Context,
  ): Promise<boolean> {
    const { host, unmarked } = this.#options;
    const ref = objectRef(key);
    const body = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { ...ref, uid, resourceVersion, ...marksOf(member) },
      target: { apiVersion: "v1", kind: "Node", name: virtualNodeName(member) },
    };
    unmarked.expect(pod, member);
    try {
      await host.createSubresource(pods, ref, "binding", body, { signal });
      return true;
    } catch (error) {
      // The pod may be bound all the same.
      if (!isKubeError(error, "AnswerLost", "ServerError", "BadAnswer")) unmarked.forget(key);
      if (isKubeError(error, "Conflict", "NotFound")) return false;
      throw error;
    }
  }

  async #mark(
    { uid, member }: ActionOf<"mark">,
    { key, signal, log }: Context,
  ): Promise<Expectation<Observed> | undefined> {
    const { host, placement, unmarked } = this.#options;
    const ref = objectRef(key);
    const pod = await host.find(pods, ref, { signal });
    if (pod?.metadata.uid === uid && isOverflow(pod) && memberOf(pod) === member) {
      log.warn({ member }, "the host's API server has not copied the labels of a Binding: written by hand");
      const body = { metadata: { uid, ...marksOf(member) } };
      await host.patch(pods, ref, { type: "strategic", body }, { signal, metadataOnly: true });
    }
    unmarked.forget(key);
    if (pod?.metadata.uid === uid) return isBound(pod) ? hasLeft(uid) : undefined;
    // The pod is gone, perhaps before a watch showed it as a proxy: no other controller hears of that.
    placement.giveUp(uid, member);
    placement.leave(uid);
    return hasLeft(uid);
  }

  #tell({ uid, message }: ActionOf<"tell">, { key }: Context): undefined {
    const { recorder, onReported, podOf } = this.#options;
    const ref = objectRef(key);
    // The name holds for the pod's life: a restarted controller does not record the event again.
    const suffix = `overflow.${uid}`;
    const createdAt = Date.parse(podOf(key)?.metadata.creationTimestamp ?? "");
    const mayExist = !(createdAt > this.#startedAt);
    recorder.record({ ...ref, uid }, { reason: NOT_OVERFLOWED, message, suffix, mayExist });
    onReported(uid);
  }
}

function ofAllAlike(refusal: Refusal | undefined): NotTaken | undefined {
  return refusal && { refusal, sharedBy: "spec" };
}

function hasLeft(uid: string): Expectation<Observed> {
  return ({ pod }) => pod.metadata.uid !== uid || isBound(pod);
}

function marksOf(member: string): Required<Pick<ObjectMeta, "labels" | "annotations">> {
  return { labels: { [PROXY_LABEL]: PROXY_LABEL_VALUE }, annotations: { [CLUSTER_ANNOTATION]: member } };
}
