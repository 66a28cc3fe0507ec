import type { AnyObject } from "../../../api/delegated-type.ts";
import type { JsonObject } from "../../../api/json.ts";
import { CLUSTER_ANNOTATION, MEMBERS_ANNOTATION, WHOLE_KEY } from "../../../api/keys.ts";
import type { ObjectKey, Stored } from "../../../api/kubernetes.ts";
import type { CopiedKind } from "../../../copies/kind.ts";
import { membersContent } from "../../../copies/object-members.ts";
import { withoutGenerations } from "../../../copies/object-status.ts";
import { isLastingRefusal } from "../../../kube/errors.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ActionContext, Expectation } from "../../../runtime/controller.ts";
import { CONTESTED_FOR_MS } from "../../copying/requests.ts";
import {
  type PatchOutcome,
  SourceWriter,
  type SourceWriterOptions,
  withFinalizer,
  withoutFinalizer,
} from "../../copying/source-writer.ts";
import { type Action, MEMBERS, type Observed, STATUS } from "./model.ts";

export interface ExecutorOptions extends SourceWriterOptions {
  readonly clock: Pick<Clock, "now">;
  readonly kind: CopiedKind<AnyObject>;
  /** Called when a status was sent, whether the host took it or not. */
  readonly onStatus: (key: ObjectKey) => void;
}

// A definition may get a status subresource later.
const NO_SUBRESOURCE_FOR_MS = 10 * 60_000;

type Done = Promise<Expectation<Observed> | undefined>;
type Context = ActionContext<ObjectKey>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

/** Carries out the writes for whole objects of one type on the host. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #writer: SourceWriter<AnyObject>;
  #hasSubresource = true;
  /** Until when the status is written as a field of the object, since the type has no subresource; epoch ms. */
  #noSubresourceUntil = 0;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#writer = new SourceWriter(options.kind, "the status", options);
  }

  /** Reports whether the host's type was last seen with a status subresource. */
  get hasSubresource(): boolean {
    return this.#hasSubresource;
  }

  /** Rejects with KubeError. */
  async execute(action: Action, context: Context): Done {
    const { object } = action;
    switch (action.type) {
      case "hold": {
        const { resourceVersion } = object.metadata;
        await this.#merge(object, { resourceVersion, finalizers: withFinalizer(object.metadata) }, context);
        return changedSince(object);
      }
      case "record": {
        const { resourceVersion } = object.metadata;
        const annotations = { [CLUSTER_ANNOTATION]: action.member };
        const metadata = { resourceVersion, annotations, finalizers: withFinalizer(object.metadata) };
        const outcome = await this.#merge(object, metadata, context);
        if (outcome === "done") this.#writer.tell(object, "Placed", `${action.member} has the object`, "Normal");
        return changedSince(object);
      }
      case "status":
        return this.#writeStatus(action, context);
      case "members":
        return this.#writeMembers(action, context);
      case "release":
        return this.#release(action, context);
      case "report":
        this.#writer.tell(object, "NotPlaced", action.message);
        return undefined;
    }
  }

  #merge(object: Stored<AnyObject>, metadata: object, { signal }: Context): Promise<PatchOutcome> {
    return this.#writer.patch(object, { type: "merge", body: { metadata } }, { signal });
  }

  async #writeStatus({ object, status }: ActionOf<"status">, context: Context): Done {
    const version = JSON.stringify(status);
    const outcome = await this.#writer.sendStatus(object, { write: STATUS, version, content: version }, context, () =>
      this.#patchStatus(object, status, context),
    );
    if (outcome === "moved") return changedSince(object);
    this.#options.onStatus(context.key);
    return outcome === "sent" ? changedSince(object) : () => true;
  }

  async #patchStatus(object: Stored<AnyObject>, status: JsonObject, { signal }: Context): Promise<PatchOutcome> {
    const { clock } = this.#options;
    const bodyOf = (value: JsonObject): object[] => [
      { op: "test", path: "/metadata/uid", value: object.metadata.uid },
      { op: "add", path: "/status", value },
    ];
    const options = { signal, isQuiet: true };
    if (clock.now() >= this.#noSubresourceUntil) {
      const patch = { type: "json", body: bodyOf(status) } as const;
      const outcome = await this.#writer.patch(object, patch, { ...options, subresource: "status" });
      if (isTaken(outcome)) this.#hasSubresource = true;
      if (outcome !== "NotFound") return outcome;
      this.#noSubresourceUntil = clock.now() + NO_SUBRESOURCE_FOR_MS;
    }
    // A write that finds no object changes nothing.
    const outcome = await this.#writer.patch(
      object,
      { type: "json", body: bodyOf(withoutGenerations(status)) },
      options,
    );
    if (outcome === "NotFound") this.#noSubresourceUntil = 0;
    if (isTaken(outcome)) this.#hasSubresource = false;
    return outcome;
  }

  async #writeMembers({ object, members }: ActionOf<"members">, context: Context): Done {
    const { guard } = this.#options;
    const { key, signal } = context;
    const { resourceVersion } = object.metadata;
    const version = membersContent(members);
    const annotations = { [MEMBERS_ANNOTATION]: JSON.stringify(members) };
    try {
      // Nothing depends on the record, and the author did not ask for it.
      const body = { metadata: { resourceVersion, annotations } };
      const outcome = await this.#writer.patch(object, { type: "merge", body }, { signal, isQuiet: true });
      if (!isTaken(outcome)) return changedSince(object);
    } catch (error) {
      if (!isLastingRefusal(error)) throw error;
      guard.refuse(key, MEMBERS, { message: error.detail }, { content: version });
      context.log.warn({ err: error }, "this cluster refuses the record of an object's members");
      return () => true;
    }
    if (guard.written(key, MEMBERS, { version }, { holdMs: CONTESTED_FOR_MS })) {
      context.log.warn("another manager keeps changing the record of an object's members: it is left for ten minutes");
    }
    return changedSince(object);
  }

  async #release({ object, members, keepsLabel = false }: ActionOf<"release">, context: Context): Done {
    if (!(await this.#writer.confirmAbsence(object, members, context))) return undefined;
    const { resourceVersion } = object.metadata;
    const labels = keepsLabel ? {} : { labels: { [WHOLE_KEY]: null } };
    const annotations = { [MEMBERS_ANNOTATION]: null };
    const metadata = { resourceVersion, finalizers: withoutFinalizer(object.metadata), ...labels, annotations };
    await this.#merge(object, metadata, context);
    return changedSince(object);
  }
}

function isTaken(outcome: PatchOutcome): boolean {
  return outcome === "done" || outcome === "unchanged";
}

function changedSince({ metadata: { resourceVersion } }: Stored<AnyObject>): Expectation<Observed> {
  return ({ object }) => object.metadata.resourceVersion !== resourceVersion;
}
