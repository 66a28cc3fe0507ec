import { MEMBERS_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject, ObjectKey, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { membersContent } from "../../copies/object-members.ts";
import { isLastingRefusal } from "../../kube/errors.ts";
import type { ActionContext, Expectation } from "../../runtime/controller.ts";
import { CONTESTED_FOR_MS } from "../copying/requests.ts";
import type { WholeWrites } from "./adapter.ts";
import { type Action, LOSS, MEMBERS, type Observed, STATUS } from "./model.ts";
import {
  isTaken,
  type PatchOutcome,
  SourceWriter,
  type SourceWriterOptions,
  withFinalizer,
  withoutFinalizer,
} from "./source-writer.ts";

export interface ExecutorOptions<T extends KubeObject, Shown> extends SourceWriterOptions {
  /** Called when a status was sent, whether the host took it or not. */
  readonly onStatus: (key: ObjectKey, shown: Shown) => void;
  /** Reports whether the member takes a copy of the object, which is recorded for it only then. Rejects with KubeError. */
  readonly isTaken: (object: Stored<T>, member: Member, context: Context) => Promise<boolean>;
  /** Called when the author is told why no member gets an object. */
  readonly onReport?: () => void;
}

type Seen<T extends KubeObject> = Pick<Observed<T, unknown>, "object">;
type Done<T extends KubeObject> = Promise<Expectation<Seen<T>> | undefined>;
type Context = ActionContext<ObjectKey>;

/** Carries out the writes on the host for objects of one kind that go to members whole. */
export class Executor<T extends KubeObject, Assignment, Shown> {
  readonly #writes: WholeWrites<T, Assignment, Shown>;
  readonly #options: ExecutorOptions<T, Shown>;
  readonly #writer: SourceWriter<T>;

  constructor(writes: WholeWrites<T, Assignment, Shown>, options: ExecutorOptions<T, Shown>) {
    this.#writes = writes;
    this.#options = options;
    this.#writer = new SourceWriter(writes.kind, options);
  }

  /** Rejects with KubeError. */
  async execute(action: Action<T, Assignment, Shown>, context: Context): Done<T> {
    const { object } = action;
    if (!(await this.#isFree(action, context))) return undefined;
    switch (action.type) {
      case "hold":
        await this.#patch(object, { finalizers: withFinalizer(object.metadata) }, context);
        break;
      case "record": {
        const { annotations, message } = this.#writes.recordOf(action.assignment);
        const all = { ...object.metadata.annotations, ...annotations };
        const written = Object.entries(all).flatMap(([key, value]) => (value === null ? [] : [[key, value] as const]));
        const recorded = { ...object, metadata: { ...object.metadata, annotations: Object.fromEntries(written) } };
        // An object that every member refuses stays where it is, and costs its cluster no write.
        if (action.move !== undefined && !(await this.#mayMove(recorded, action.move.to, context))) return undefined;
        const metadata = { annotations, finalizers: withFinalizer(object.metadata) };
        const outcome = await this.#patch(object, metadata, context);
        if (outcome === "done") this.#writer.tell(object, "Placed", message, "Normal");
        break;
      }
      case "status":
      case "fail":
        return this.#writeStatus(action, context);
      case "members":
        return this.#writeMembers(action, context);
      case "release": {
        const marks = this.#writes.marksOnRelease?.(action.keepsLabel === true);
        await this.#patch(object, { finalizers: withoutFinalizer(object.metadata), ...marks }, context);
        break;
      }
      case "report":
        this.#writer.tell(object, "NotPlaced", action.message);
        this.#options.onReport?.();
        return undefined;
    }
    return changedSince(object);
  }

  /** Reports false for a member that left since the decision: the next refusal chooses another. Rejects with KubeError. */
  async #mayMove(object: Stored<T>, name: string, context: Context): Promise<boolean> {
    const member = this.#options.registry.member(name);
    return member !== undefined && (await this.#options.isTaken(object, member, context));
  }

  /** Asks members for the copies that must not be there when the action is done. Rejects with KubeError. */
  async #isFree(action: Action<T, Assignment, Shown>, context: Context): Promise<boolean> {
    const { type, object } = action;
    if (type === "release") return this.#writer.confirmAbsence(object, action.members, context);
    const lost = type === "fail" && !action.isGone ? action.member : undefined;
    const member = type === "record" ? action.move?.from : lost;
    return member === undefined || !(await this.#writer.hasCopy(object, member, context.signal));
  }

  /** Writes for the version that was read. */
  #patch(object: Stored<T>, metadata: object, { signal }: Context, isQuiet = false): Promise<PatchOutcome> {
    const { resourceVersion } = object.metadata;
    const body = { metadata: { resourceVersion, ...metadata } };
    return this.#writer.patch(object, { type: "merge", body }, { signal, isQuiet });
  }

  /** Holds a status that the host refuses, or that another manager keeps changing, and tells the author. */
  async #writeStatus(
    { type, object, shown }: { readonly type: "status" | "fail"; readonly object: Stored<T>; readonly shown: Shown },
    { key, signal, log }: Context,
  ): Done<T> {
    const { guard, onStatus } = this.#options;
    const { statusName } = this.#writes;
    const version = JSON.stringify(shown);
    // Each end of a lost object has another time, and any is refused.
    const [write, held] = type === "status" ? [STATUS, { content: version }] : [LOSS, {}];
    try {
      const outcome = await this.#writes.writeStatus(object, shown, (body, options) =>
        this.#writer.patch(object, { type: "json", body }, { signal, isQuiet: true, ...options }),
      );
      if (!isTaken(outcome)) return changedSince(object);
      onStatus(key, shown);
      if (outcome === "unchanged") {
        // The host prunes or defaults a field.
        guard.done(key, write);
        guard.hold(key, write, "NoEffect", { ...held, holdMs: CONTESTED_FOR_MS });
        return () => true;
      }
    } catch (error) {
      if (!isLastingRefusal(error)) throw error;
      const message = `this cluster refuses ${statusName}: ${error.detail}`;
      if (guard.refuse(key, write, { message }, held)) {
        this.#writer.tell(object, "StatusRefused", message);
      }
      onStatus(key, shown);
      return () => true;
    }
    if (guard.written(key, write, { version }, { holdMs: CONTESTED_FOR_MS })) {
      const message = `another manager keeps changing ${statusName}: it is left as it is for ten minutes`;
      log.warn(message);
      this.#writer.tell(object, "StatusContested", message);
    }
    return changedSince(object);
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

export function wholeStatusPatch({ metadata: { uid } }: Stored<KubeObject>, status: object): object[] {
  return [
    { op: "test", path: "/metadata/uid", value: uid },
    { op: "add", path: "/status", value: status },
  ];
}
