import { OVERRIDES_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Refusal, RefusalReason } from "../../../placement/candidate.ts";
import type { SharedBy } from "../model/decision.ts";
import type { ShapeRefusal } from "../model/view.ts";

interface Entry extends ShapeRefusal {
  /** The member's `roomVersion` at the refusal. */
  readonly version: string;
  /** The pod that is being tried again: the others wait for its answer. */
  trial?: { readonly uid: string; readonly until: number };
}

/** The same texts for pods that cannot be told apart by their spec, or by spec and labels. */
export type Shape = Readonly<Record<SharedBy, string>>;

// A quota may have been raised, a class made: nothing tells.
const RETRY_AFTER_MS = 30_000;
// A trial that has no answer by then is forgotten.
const TRIAL_MS = 60_000;
// Shapes of one member; the oldest refusal is forgotten first.
const KEPT = 1000;
const TOKEN_VOLUME = "kube-api-access-";
// A controller numbers its pods by these, so their names differ as much.
const OWN_LABELS: ReadonlySet<string> = new Set([
  "apps.kubernetes.io/pod-index",
  "batch.kubernetes.io/job-completion-index",
  "statefulset.kubernetes.io/pod-name",
]);

/**
 * Remembers by member what it has refused to all pods of a shape, so that not each pod of a large workload finds out by itself.
 * When something there has changed, or after a while, one pod tries again for all. Losing this costs time alone.
 */
export class Shapes {
  /** By member, then by either text of a shape. */
  readonly #members = new Map<string, Map<string, Entry>>();
  /** Where pods are tried for others, by uid. */
  readonly #trials = new Map<string, { readonly member: string; readonly shape: Shape }>();

  /** The member takes no pod of this shape. A pod that rests there for `restMs` itself holds up no other for longer. */
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

  /** A pod of this shape is about to be tried there. */
  attempt(member: string, shape: Shape, uid: string, now: number): void {
    this.abandon(uid);
    const entries = this.#entries(member, shape);
    if (entries.length === 0) return;
    for (const entry of entries) entry.trial = { uid, until: now + TRIAL_MS };
    this.#trials.set(uid, { member, shape });
  }

  /** Nothing will be known of its shape by this pod; true when others waited for that. */
  abandon(uid: string): boolean {
    const trial = this.#trials.get(uid);
    if (trial === undefined) return false;
    this.#trials.delete(uid);
    const entries = this.#entries(trial.member, trial.shape).filter((entry) => entry.trial?.uid === uid);
    for (const entry of entries) delete entry.trial;
    return entries.length > 0;
  }

  /** The member has a node for a pod of this shape; true when it had refused some. `only`: what it refused for another reason stays. */
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

  /** Why the pod is not tried there now; undefined when it may be. */
  refusal(member: string, shape: Shape, uid: string, version: string, now: number): ShapeRefusal | undefined {
    for (const entry of this.#entries(member, shape)) {
      const { trial, refusal } = entry;
      if (trial !== undefined && now < trial.until) {
        if (trial.uid !== uid) return { refusal, until: trial.until };
      } else if (now < entry.until && entry.version === version) return entry;
    }
    return undefined;
  }

  /** Whether no member has refused anything: then no shape has to be made. */
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
    // A pod that has overflowed has its node before its member's scheduler is asked.
    if (key === "hostname" || key === "nodeName") return undefined;
    return typeof value === "string" && value.startsWith(TOKEN_VOLUME) ? TOKEN_VOLUME : value;
  });
  const labels = Object.entries(metadata.labels ?? {}).filter(([key]) => !OWN_LABELS.has(key));
  return { spec: text, labels: `${text}${JSON.stringify(labels.sort())}` };
}
