import type { ObjectKey, Pod } from "../../../api/kubernetes.ts";
import { isKubeError } from "../../../kube/errors.ts";
import type { RefusedWrite } from "../../../pods/proxy-conditions.ts";
import type { ReadStore } from "../../../runtime/store.ts";
import type { RefusedWrites } from "../../refused-writes.ts";
import type { Action } from "../decision/decision.ts";

/** Tells authors of actions that a cluster goes on refusing. */
export class RefusedActions {
  readonly #refusedWrites: RefusedWrites;
  readonly #proxies: Pick<ReadStore<Pod>, "get">;

  constructor(refusedWrites: RefusedWrites, proxies: Pick<ReadStore<Pod>, "get">) {
    this.#refusedWrites = refusedWrites;
    this.#proxies = proxies;
  }

  done(key: ObjectKey, action: Action): void {
    const proxyUid = this.#concerned(key, action);
    // `Creation` judges its failures: a pod whose needs are copied first has had no answer.
    if (proxyUid === undefined || action.type === "create") return;
    // Parts of these may be refused, which is told as such.
    const isPartial = action.type === "forward" || action.type === "status" || action.type === "restoreMarks";
    if (isPartial) this.#refusedWrites.writes.answered(proxyUid, nameOf(action));
    else this.#refusedWrites.over(key, proxyUid, nameOf(action));
  }

  failed(key: ObjectKey, action: Action, error: unknown): void {
    const proxyUid = this.#concerned(key, action);
    const refused = isKubeError(error) ? refusedWrite(action, error.detail) : undefined;
    if (proxyUid !== undefined && refused !== undefined)
      this.#refusedWrites.note(key, proxyUid, nameOf(action), error, refused);
  }

  #concerned(key: ObjectKey, action: Action): string | undefined {
    const { uid } = this.#proxies.get(key)?.metadata ?? {};
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
    case "gather":
    case "handOver":
    case "noteRefusal":
    case "sweep":
      return undefined;
  }
}
