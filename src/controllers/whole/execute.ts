import { MEMBERS_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject, ObjectKey, Stored } from "../../api/kubernetes.ts";
import { membersContent } from "../../copies/object-members.ts";
import { isLastingRefusal } from "../../kube/errors.ts";
import type { ActionContext, Expectation } from "../../runtime/controller.ts";
import { CONTESTED_FOR_MS } from "../copying/requests.ts";
import {
  isTaken,
  type PatchOutcome,
  SourceWriter,
  type SourceWriterOptions,
  withFinalizer,
  withoutFinalizer,
} from "../copying/source-writer.ts";
import type { WholeWrites } from "./adapter.ts";
import { type Action, LOSS, MEMBERS, STATUS } from "./model.ts";

export interface ExecutorOptions<Shown> extends SourceWriterOptions {
  /** Called when a status was sent, whether the host took it or not. */
  readonly onStatus: (key: ObjectKey, shown: Shown) => void;
  /** Called when the author is told why no member gets an object. */
  readonly onReport?: () => void;
}

/** What an expectation reads of a view. */
interface Seen<T extends KubeObject> {
  readonly object: Stored<T>;
}

type Done<T extends KubeObject> = Promise<Expectation<Seen<T>> | undefined>;
type Context = ActionContext<ObjectKey>;

/** Carries out the writes on the host for objects of one kind that go to members whole. */
export class Executor<T extends KubeObject, Assignment, Shown> {
  readonly #writes: WholeWrites<T, Assignment, Shown>;
  readonly #options: ExecutorOptions<Shown>;
  readonly #writer: SourceWriter<T>;

  constructor(writes: WholeWrites<T, Assignment, Shown>, options: ExecutorOptions<Shown>) {
    this.#writes = writes;
    this.#options = options;
    this.#writer = new SourceWriter(writes.kind, writes.statusName, options);
  }

  /** Rejects with KubeError. */
  async execute(action: Action<T, Assignment, Shown>, context: Context): Done<T> {
    const { object } = action;
    if (!(await this.#isFree(action, context))) return undefined;
    switch (action.type) {
      case "hold":
        await this.#patch(object, { finalizers: withFinalizer(object.metadata) }, context);
        return changedSince(object);
      case "record": {
        const { annotations, message } = this.#writes.recordOf(action.assignment);
        const metadata = { annotations, finalizers: withFinalizer(object.metadata) };
        const outcome = await this.#patch(object, metadata, context);
        if (outcome === "done") this.#writer.tell(object, "Placed", message, "Normal");
        return changedSince(object);
      }
      case "status":
      case "fail":
        return this.#writeStatus(action, context);
      case "members":
        return this.#writeMembers(action, context);
      case "release": {
        const marks = this.#writes.marksOnRelease?.(action.keepsLabel === true);
        await this.#patch(object, { finalizers: withoutFinalizer(object.metadata), ...marks }, context);
        return changedSince(object);
      }
      case "report":
        this.#writer.tell(object, "NotPlaced", action.message);
        this.#options.onReport?.();
        return undefined;
    }
  }

  /** Asks members for the copies that must not be there when the action is done. Rejects with KubeError. */
  async #isFree(action: Action<T, Assignment, Shown>, context: Context): Promise<boolean> {
    const { object } = action;
    if (action.type === "release") return this.#writer.confirmAbsence(object, action.members, context);
    const member =
      action.type === "record" ? action.before : action.type === "fail" && !action.isGone ? action.member : undefined;
    return member === undefined || !(await this.#writer.hasCopy(object, member, context.signal));
  }

  /** Writes for the version that was read. */
  #patch(object: Stored<T>, metadata: object, { signal }: Context, isQuiet = false): Promise<PatchOutcome> {
    const { resourceVersion } = object.metadata;
    const body = { metadata: { resourceVersion, ...metadata } };
    return this.#writer.patch(object, { type: "merge", body }, { signal, isQuiet });
  }

  async #writeStatus(
    { type, object, shown }: { readonly type: "status" | "fail"; readonly object: Stored<T>; readonly shown: Shown },
    context: Context,
  ): Done<T> {
    const { key, signal } = context;
    const version = this.#writes.contentOf(shown);
    // Each end of a lost object has another time, and any is refused.
    const write = type === "status" ? { write: STATUS, version, content: version } : { write: LOSS, version };
    const outcome = await this.#writer.sendStatus(object, write, context, () =>
      this.#writes.writeStatus(object, shown, (body, options) =>
        this.#writer.patch(object, { type: "json", body }, { signal, isQuiet: true, ...options }),
      ),
    );
    if (outcome === "moved") return changedSince(object);
    this.#options.onStatus(key, shown);
    return outcome === "sent" ? changedSince(object) : () => true;
  }

  async #writeMembers(
    { object, members }: Extract<Action<T, Assignment, Shown>, { readonly type: "members" }>,
    context: Context,
  ): Done<T> {
    const { guard } = this.#options;
    const { key } = context;
    const version = membersContent(members);
    try {
      // Nothing depends on the record, and the author did not ask for it.
      const annotations = { [MEMBERS_ANNOTATION]: JSON.stringify(members) };
      const outcome = await this.#patch(object, { annotations }, context, true);
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
}

function changedSince<T extends KubeObject>({ metadata: { resourceVersion } }: Stored<T>): Expectation<Seen<T>> {
  return ({ object }) => object.metadata.resourceVersion !== resourceVersion;
}

/** Returns the patch of a status of this very object. */
export function statusPatch({ metadata: { uid } }: Stored<KubeObject>, status: object): object[] {
  return [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "add", path: "/status", value: status },
  ];
}
