import type { AnyObject } from "../../api/delegated-type.ts";
import type { JsonObject } from "../../api/json.ts";
import { CLUSTER_ANNOTATION, MEMBERS_ANNOTATION, WHOLE_FINALIZER, WHOLE_KEY } from "../../api/keys.ts";
import type { ObjectKey, Stored } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import { type CopiedKind, toCopy } from "../../copies/kind.ts";
import { membersContent } from "../../copies/object-members.ts";
import type { ClusterClient, Patch, WriteOptions } from "../../kube/client.ts";
import { isKubeError, isLastingRefusal } from "../../kube/errors.ts";
import { withoutAmounts } from "../../kube/messages.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, Expectation } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import type { WriteGuard } from "../../runtime/write-guard.ts";
import { findCopy, inMember } from "../copying/writer.ts";
import { type Action, MEMBERS, type Observed, STATUS } from "./model.ts";

export interface ExecutorOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "member">;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly guard: WriteGuard<ObjectKey>;
  readonly clock: Pick<Clock, "now">;
  readonly kind: CopiedKind<AnyObject>;
  /** Called when a status was sent, whether the host took it or not. */
  readonly onStatus: (key: ObjectKey) => void;
}

const CONTESTED_FOR_MS = 10 * 60_000;
// A definition may get a status subresource later.
const NO_SUBRESOURCE_FOR_MS = 10 * 60_000;

type Done = Promise<Expectation<Observed> | undefined>;
type Context = ActionContext<ObjectKey>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

/** Carries out the writes for whole objects of one type on the host. */
export class Executor {
  readonly #options: ExecutorOptions;
  /** Until when the status is written as a field of the object, since the type has no subresource; epoch ms. */
  #noSubresourceUntil = 0;

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /** Rejects with KubeError. */
  async execute(action: Action, context: Context): Done {
    switch (action.type) {
      case "hold": {
        const { resourceVersion, finalizers = [] } = action.object.metadata;
        const body = { metadata: { resourceVersion, finalizers: [...finalizers, WHOLE_FINALIZER] } };
        await this.#patch(action.object, { type: "merge", body }, context);
        return changedSince(action.object);
      }
      case "record": {
        const { resourceVersion, finalizers = [] } = action.object.metadata;
        const held = finalizers.includes(WHOLE_FINALIZER) ? finalizers : [...finalizers, WHOLE_FINALIZER];
        const metadata = { resourceVersion, annotations: { [CLUSTER_ANNOTATION]: action.member }, finalizers: held };
        const answer = await this.#patch(action.object, { type: "merge", body: { metadata } }, context);
        if (answer === "done") this.#tell(action.object, "Placed", `${action.member} has the object`, "Normal");
        return changedSince(action.object);
      }
      case "status":
        return this.#writeStatus(action, context);
      case "members":
        return this.#writeMembers(action, context);
      case "release":
        return this.#release(action, context);
      case "report":
        this.#tell(action.object, "NotPlaced", action.message);
        return undefined;
    }
  }

  async #writeStatus({ object, status }: ActionOf<"status">, context: Context): Done {
    const { guard, onStatus } = this.#options;
    const { key, log } = context;
    const version = JSON.stringify(status);
    try {
      await this.#sendStatus(object, status, context);
    } catch (error) {
      if (!isLastingRefusal(error)) throw error;
      onStatus(key);
      const message = `this cluster refuses the status: ${error.detail}`;
      if (guard.refuse(key, STATUS, { message, dedupe: message }, { content: version })) {
        this.#tell(object, "StatusRefused", message);
      }
      return () => true;
    }
    onStatus(key);
    if (guard.written(key, STATUS, { version }, { holdMs: CONTESTED_FOR_MS })) {
      const message = "another manager keeps changing the status: it is left as it is for ten minutes";
      log.warn(message);
      this.#tell(object, "StatusContested", message);
    }
    return changedSince(object);
  }

  async #sendStatus(object: Stored<AnyObject>, status: JsonObject, context: Context): Promise<void> {
    const { clock } = this.#options;
    const body = [
      { op: "test", path: "/metadata/uid", value: object.metadata.uid },
      { op: "add", path: "/status", value: status },
    ];
    if (clock.now() >= this.#noSubresourceUntil) {
      const answer = await this.#patch(object, { type: "json", body }, context, { subresource: "status" });
      if (answer !== "NotFound") return;
      this.#noSubresourceUntil = clock.now() + NO_SUBRESOURCE_FOR_MS;
    }
    // A write that finds no object changes nothing.
    const answer = await this.#patch(object, { type: "json", body }, context);
    if (answer === "NotFound") this.#noSubresourceUntil = 0;
  }

  async #writeMembers({ object, members }: ActionOf<"members">, context: Context): Done {
    const { host, guard, kind } = this.#options;
    const { key, log, signal } = context;
    const { resourceVersion } = object.metadata;
    const version = membersContent(members);
    const annotations = { [MEMBERS_ANNOTATION]: JSON.stringify(members) };
    const patch = { type: "merge", body: { metadata: { resourceVersion, annotations } } } as const;
    try {
      await host.patch(kind.resource, refOf(object), patch, { signal, metadataOnly: true });
    } catch (error) {
      if (isKubeError(error, "Conflict", "NotFound")) return changedSince(object);
      if (!isLastingRefusal(error)) throw error;
      // Nothing depends on the record, and the author did not ask for it.
      guard.refuse(key, MEMBERS, { message: error.detail }, { content: version });
      log.warn({ err: error }, "this cluster refuses the record of an object's members");
      return () => true;
    }
    if (guard.written(key, MEMBERS, { version }, { holdMs: CONTESTED_FOR_MS })) {
      log.warn("another manager keeps changing the record of an object's members: it is left for ten minutes");
    }
    return changedSince(object);
  }

  async #release({ object, members, keepsLabel = false }: ActionOf<"release">, context: Context): Done {
    for (const member of members) if (await this.#hasCopy(object, member, context.signal)) return undefined;
    const { resourceVersion, finalizers = [] } = object.metadata;
    const others = finalizers.filter((finalizer) => finalizer !== WHOLE_FINALIZER);
    const labels = keepsLabel ? {} : { labels: { [WHOLE_KEY]: null } };
    const body = {
      metadata: { resourceVersion, finalizers: others, ...labels, annotations: { [MEMBERS_ANNOTATION]: null } },
    };
    await this.#patch(object, { type: "merge", body }, context);
    return changedSince(object);
  }

  /** Asks the member itself: a create whose response was lost may have been done since. */
  async #hasCopy(source: Stored<AnyObject>, name: string, signal: AbortSignal): Promise<boolean> {
    const { identity, registry, kind } = this.#options;
    const { resource } = kind;
    const object = toCopy(kind, source, identity);
    const ref = refOf(source);
    const has = await inMember(registry, name, (member) =>
      findCopy({ member, resource, ref, object, hostId: identity.id, signal }),
    );
    return has ?? false;
  }

  /** An object that has changed since, or is gone, is an event. */
  async #patch(
    object: Stored<AnyObject>,
    patch: Patch,
    { signal }: Context,
    options: WriteOptions = {},
  ): Promise<"done" | "Conflict" | "NotFound"> {
    const { host, kind } = this.#options;
    try {
      await host.patch(kind.resource, refOf(object), patch, { ...options, signal, metadataOnly: true });
      return "done";
    } catch (error) {
      if (isKubeError(error, "Conflict")) return "Conflict";
      if (isKubeError(error, "NotFound")) return "NotFound";
      const isStatus = patch.type === "json";
      if (isLastingRefusal(error) && !isStatus) {
        this.#tell(object, "Refused", `this cluster refuses a change: ${error.detail}`);
      }
      throw error;
    }
  }

  #tell(object: Stored<AnyObject>, reason: string, message: string, type: "Normal" | "Warning" = "Warning"): void {
    const dedupe = `${object.metadata.uid}/${withoutAmounts(message)}`;
    this.#options.recorder.record(referenceTo(this.#options.kind.resource, object), {
      reason,
      message,
      type,
      dedupe,
    });
  }
}

function refOf({ metadata: { namespace = "", name } }: Stored<AnyObject>): {
  readonly namespace: string;
  readonly name: string;
} {
  return { namespace, name };
}

function changedSince({ metadata: { resourceVersion } }: Stored<AnyObject>): Expectation<Observed> {
  return ({ object }) => object.metadata.resourceVersion !== resourceVersion;
}
