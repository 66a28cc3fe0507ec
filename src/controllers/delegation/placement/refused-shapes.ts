import { OVERRIDES_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Refusal, RefusalReason } from "../../../placement/candidate.ts";
import type { SharedBy } from "../decision/decision.ts";
import { RETRY_AFTER_MS } from "../decision/refusal-backoff.ts";
import type { ShapeRefusal } from "../decision/view.ts";

interface Entry extends ShapeRefusal {
  /** The member's `roomVersion` at the refusal. */
  readonly version: string;
  /** The pod that is tried for all: the others wait for its answer. */
  trial?: { readonly uid: string; readonly until: number };
}

/** Texts that are equal for pods with the same spec, or with the same spec and labels. */
export type Shape = Readonly<Record<SharedBy, string>>;

// A trial without an answer is forgotten after this.
const TRIAL_MS = 60_000;
// Shapes kept per member; the oldest refusal is forgotten first.
const KEPT = 1000;
const TOKEN_VOLUME = "kube-api-access-";
// Labels by which controllers number their pods.
const OWN_LABELS: ReadonlySet<string> = new Set([
  "apps.kubernetes.io/pod-index",
  "batch.kubernetes.io/job-completion-index",
  "statefulset.kubernetes.io/pod-name",
]);

/** The shapes of pods that members refused. After a change there, or a while, one pod tries for all of its shape. */
export class RefusedShapes {
  readonly #members = new Map<string, Map<string, Entry>>();
  readonly #trials = new Map<string, { readonly member: string; readonly shape: Shape }>();

  /** Notes that the member takes no pod of this shape. The pod's own backoff of `restMs` holds up others no longer than that. */
  refuse(
    member: string,
    shape: string,
    refusal: Refusal,
    version: string,
    now: number,
    restMs: number = RETRY_AFTER_MS,
  ): void {
    let shapes = this.#members.get(member);
    if (shapes === undefined) {
      shapes = new Map();
      this.#members.set(member, shapes);
    }
    shapes.delete(shape);
    shapes.set(shape, { refusal, until: now + Math.min(restMs, RETRY_AFTER_MS), version });
    for (const oldest of shapes.keys()) {
      if (shapes.size <= KEPT) break;
      shapes.delete(oldest);
    }
  }

  attempt(member: string, shape: Shape, uid: string, now: number): void {
    this.abandon(uid);
    const entries = this.#entries(member, shape);
    if (entries.length === 0) return;
    for (const entry of entries) entry.trial = { uid, until: now + TRIAL_MS };
    this.#trials.set(uid, { member, shape });
  }

  /** Ends the pod's trial. Reports whether other pods waited for it. */
  abandon(uid: string): boolean {
    const trial = this.#trials.get(uid);
    if (trial === undefined) return false;
    this.#trials.delete(uid);
    const entries = this.#entries(trial.member, trial.shape).filter((entry) => entry.trial?.uid === uid);
    for (const entry of entries) delete entry.trial;
    return entries.length > 0;
  }

  /** Notes that the member takes pods of this shape. Reports whether it had refused some. `only`: other reasons stay. */
  accept(member: string, shape: Shape, only?: RefusalReason): boolean {
    const shapes = this.#members.get(member);
    let known = false;
    for (const text of Object.values(shape)) {
      const reason = shapes?.get(text)?.refusal.reason;
      if (only === undefined || reason === only) known = shapes?.delete(text) === true || known;
    }
    if (shapes?.size === 0) this.#members.delete(member);
    return known;
  }

  refusal(member: string, shape: Shape, uid: string, version: string, now: number): ShapeRefusal | undefined {
    for (const entry of this.#entries(member, shape)) {
      const { trial, refusal } = entry;
      if (trial !== undefined && now < trial.until) {
        if (trial.uid !== uid) return { refusal, until: trial.until };
      } else if (now < entry.until && entry.version === version) return entry;
    }
    return undefined;
  }

  get empty(): boolean {
    return this.#members.size === 0;
  }

  #entries(member: string, shape: Shape): Entry[] {
    const shapes = this.#members.get(member);
    return Object.values(shape).flatMap((text) => shapes?.get(text) ?? []);
  }
}

/** Returns the parts by which members may tell pods apart: the spec without the pod's own name, overrides, and labels. */
export function shapeOf({ metadata, spec }: Stored<Pod>): Shape {
  const overrides = metadata.annotations?.[OVERRIDES_ANNOTATION];
  const text = JSON.stringify([metadata.namespace, overrides, spec], (key, value: unknown) => {
    // A pod that was bound first has its node before the member's scheduler is asked.
    if (key === "hostname" || key === "nodeName") return undefined;
    return typeof value === "string" && value.startsWith(TOKEN_VOLUME) ? TOKEN_VOLUME : value;
  });
  const labels = Object.entries(metadata.labels ?? {}).filter(([key]) => !OWN_LABELS.has(key));
  return { spec: text, labels: `${text}${JSON.stringify(labels.sort())}` };
}
