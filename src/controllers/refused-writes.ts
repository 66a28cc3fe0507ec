import { type ObjectKey, objectRef } from "../api/kubernetes.ts";
import { isKubeError } from "../kube/errors.ts";
import { withoutAmounts } from "../kube/messages.ts";
import type { RefusedWrite } from "../pods/proxy-conditions.ts";
import type { EventRecorder } from "../runtime/event-recorder.ts";
import { HOLD_MS } from "../runtime/held-writes.ts";
import type { WriteGuard } from "../runtime/write-guard.ts";
import type { Emitter } from "./events.ts";

// A refused write is tried again after HOLD_MS at the latest, which renews the refusal.
const REFUSED_MS = HOLD_MS + 60_000;

export interface RefusedWritesOptions {
  /** Holds the writes, by proxy uid. */
  readonly writes: WriteGuard<string, RefusedWrite>;
  readonly recorder: Pick<EventRecorder, "record">;
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

  /** Tells the author of lasting refusals, and of errors that go on for a while. */
  note(key: ObjectKey, proxyUid: string, what: string, error: unknown, refused: RefusedWrite): void {
    // A cluster without a response is lost or stopping, as its virtual node shows.
    if (!isKubeError(error) || error.status === undefined) return;
    if (this.writes.failed(proxyUid, what, error) === "transient") return;
    this.tell(key, proxyUid, what, refused);
  }
}
