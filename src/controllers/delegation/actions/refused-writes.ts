import { type ObjectKey, objectRef, type Pod } from "../../../api/kubernetes.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { withoutAmounts } from "../../../kube/messages.ts";
import type { RefusedWrite } from "../../../pods/proxy-conditions.ts";
import type { EventRecorder } from "../../../runtime/event-recorder.ts";
import { HOLD_MS } from "../../../runtime/held-writes.ts";
import type { ReadStore } from "../../../runtime/store.ts";
import type { WriteGuard } from "../../../runtime/write-guard.ts";
import type { Emitter } from "../../events.ts";
import type { Action } from "../decision/decision.ts";

// A refused write is tried again after HOLD_MS at the latest, which renews the refusal.
const REFUSED_MS = HOLD_MS + 60_000;

export interface RefusedWritesOptions {
  /** Holds the writes, by proxy uid. */
  readonly writes: WriteGuard<string, RefusedWrite>;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly events: Emitter;
}

/** Tells authors of writes that a cluster goes on refusing, by event and by the condition `legation.dev/Refused`. */
export class RefusedWrites {
  readonly writes: WriteGuard<string, RefusedWrite>;
  readonly #options: RefusedWritesOptions;

  constructor(options: RefusedWritesOptions) {
    this.#options = options;
    this.writes = options.writes;
  }

  /** `what` tells the write from the pod's other writes. Reports whether the author was told now. */
  tell(key: ObjectKey, proxyUid: string, what: string, refused: RefusedWrite): boolean {
    const { recorder, events } = this.#options;
    const why = { ...refused, dedupe: withoutAmounts(refused.message) };
    if (!this.writes.refuse(proxyUid, what, why, { holdMs: REFUSED_MS })) return false;
    recorder.record({ ...objectRef(key), uid: proxyUid }, refused);
    events.emit("refusedWrite", key);
    return true;
  }

  over(key: ObjectKey, proxyUid: string, what: string): void {
    if (this.writes.done(proxyUid, what)) this.#options.events.emit("refusedWrite", key);
  }

  done(key: ObjectKey, action: Action): void {
    const proxyUid = this.#concerned(key, action);
    // `Creation` judges its failures: a pod whose needs are copied first has had no answer.
    if (proxyUid === undefined || action.type === "create") return;
    // Parts of these may be refused, which is told as such.
    const isPartial = action.type === "forward" || action.type === "status" || action.type === "restoreMarks";
    if (isPartial) this.writes.answered(proxyUid, nameOf(action));
    else this.over(key, proxyUid, nameOf(action));
  }

  failed(key: ObjectKey, action: Action, error: unknown): void {
    const proxyUid = this.#concerned(key, action);
    const refused = isKubeError(error) ? refusedWrite(action, error.detail) : undefined;
    if (proxyUid !== undefined && refused !== undefined) this.note(key, proxyUid, nameOf(action), error, refused);
  }

  /** Tells the author of lasting refusals, and of errors that go on for a while. */
  note(key: ObjectKey, proxyUid: string, what: string, error: unknown, refused: RefusedWrite): void {
    // A cluster without a response is lost or stopping, as its virtual node shows.
    if (!isKubeError(error) || error.status === undefined) return;
    if (this.writes.failed(proxyUid, what, error) === "transient") return;
    this.tell(key, proxyUid, what, refused);
  }

  #concerned(key: ObjectKey, action: Action): string | undefined {
    const { uid } = this.#options.proxies.get(key)?.metadata ?? {};
    return "proxyUid" in action && action.proxyUid !== uid ? undefined : uid;
  }
}

function nameOf(action: Action): string {
  return "member" in action ? `${action.type} ${action.member}` : action.type;
}

/** Returns undefined where another place tells it: creates and Bindings by the reason why the pod waits. */
function refusedWrite(action: Action, detail: string): RefusedWrite | undefined {
  const here = (what: string): string =>
    `this cluster refuses ${what}: ${detail}; allow it to Legation's controller, which tries again`;
  switch (action.type) {
    case "delete": {
      const advice = "allow it there, where it is tried again, or delete the pod there yourself";
      const message = `${action.member}: its API server refuses to delete the pod there: ${detail}; ${advice}`;
      return { reason: "DeletionRefused", message };
    }
    case "deleteProxy":
      return {
        reason: "ReleaseRefused",
        message: here("the deletion with grace 0 of a pod whose containers are gone"),
      };
    case "removeFinalizer":
      return { reason: "ReleaseRefused", message: here("that Legation's finalizer is taken off the pod") };
    case "evict":
      return { reason: "EvictionRefused", message: here("to delete the pod, which is being deleted in its member") };
    case "addFinalizer":
      return { reason: "NotHeld", message: here("Legation's finalizer on the pod, without which it gets no delegate") };
    case "recordDelegate":
      return { reason: "NotRecorded", message: here("the annotations that name the pod's delegate") };
    case "status":
      return { reason: "StatusRefused", message: here("the status that the member tells") };
    case "report":
      return { reason: action.reason, message: `${action.message} (${here("the condition that says so")})` };
    case "forward": {
      const message = `${action.member}: its API server refuses a change of the pod: ${detail}; allow it there, where it is tried again`;
      return { reason: "NotForwarded", message };
    }
    case "restoreMarks":
    case "confirmCreated": {
      const message = `${action.member}: its API server does not say whether it has the pod: ${detail}; legation join ${action.member} gives Legation's rights back`;
      return { reason: "NotFollowed", message };
    }
    case "create":
    case "bind":
    case "readPreviousDelegate":
    case "announce":
    case "prepare":
    case "reserve":
    case "noteRefusal":
    case "sweep":
      return undefined;
  }
}
