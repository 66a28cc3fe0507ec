import { OVERRIDES_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import type { ShapeRefusal } from "../decisions/model.ts";

interface Entry extends ShapeRefusal {
  /** The member's `roomVersion` at the refusal. */
  readonly version: string;
  /** The pod that is being tried again: the others wait for its answer. */
  trial?: { readonly uid: string; readonly until: number };
}

// A quota may have been raised, a class made: nothing tells.
const RETRY_AFTER_MS = 30_000;
// A trial that has no answer by then is forgotten.
const TRIAL_MS = 60_000;
// Shapes of one member; the oldest refusal is forgotten first.
const KEPT = 1000;
const TOKEN_VOLUME = "kube-api-access-";

/**
 * Remembers by member what shapes of pods it has refused, so that not each pod of a large workload finds out by itself.
 * When something there has changed, or after a while, one pod tries again for all. Losing this costs time alone.
 */
export class Shapes {
  readonly #members = new Map<string, Map<string, Entry>>();
  /** Where pods are tried for others, by uid. */
  readonly #trials = new Map<string, { readonly member: string; readonly shape: string }>();

  /** The member did not take a pod of this shape, which itself rests for `restMs`: others do not for longer than half a minute. */
  refuse(
    member: string,
    shape: string,
    refusal: Refusal,
    version: string,
    now: number,
    restMs: number = RETRY_AFTER_MS,
  ): void {
    this.#note(member, shape, { refusal, until: now + Math.min(restMs, RETRY_AFTER_MS), version });
  }

  /** The member did not take this pod, for what is its own: its name is taken, say. No change of the member's room changes that. */
  refuseAlone(member: string, uid: string, refusal: Refusal, now: number): void {
    this.#note(member, uid, { refusal, until: now + RETRY_AFTER_MS, version: "" });
  }

  /** By its shape, or by its uid, which is no shape. */
  #note(member: string, shape: string, entry: Entry): void {
    let shapes = this.#members.get(member);
    if (shapes === undefined) {
      shapes = new Map();
      this.#members.set(member, shapes);
    }
    shapes.delete(shape);
    shapes.set(shape, entry);
    for (const oldest of shapes.keys()) {
      if (shapes.size <= KEPT) break;
      shapes.delete(oldest);
    }
  }

  /** A pod of this shape is about to be tried there. */
  attempt(member: string, shape: string, uid: string, now: number): void {
    this.abandon(uid);
    const entry = this.#members.get(member)?.get(shape);
    if (entry === undefined) return;
    entry.trial = { uid, until: now + TRIAL_MS };
    this.#trials.set(uid, { member, shape });
  }

  /** Nothing will be known of its shape by this pod; true when others waited for that. */
  abandon(uid: string): boolean {
    const trial = this.#trials.get(uid);
    if (trial === undefined) return false;
    this.#trials.delete(uid);
    const entry = this.#members.get(trial.member)?.get(trial.shape);
    if (entry?.trial?.uid !== uid) return false;
    delete entry.trial;
    return true;
  }

  /** The member has a node for a pod of this shape; true when it had refused some. */
  accept(member: string, shape: string): boolean {
    const shapes = this.#members.get(member);
    const known = shapes?.delete(shape) ?? false;
    if (shapes?.size === 0) this.#members.delete(member);
    return known;
  }

  /** Why the pod is not tried there now; undefined when it may be. */
  refusal(member: string, shape: string, uid: string, version: string, now: number): ShapeRefusal | undefined {
    const shapes = this.#members.get(member);
    const own = shapes?.get(uid);
    if (own !== undefined && now < own.until) return own;
    const entry = shapes?.get(shape);
    if (entry === undefined) return undefined;
    const { trial, refusal } = entry;
    if (trial !== undefined && now < trial.until)
      return trial.uid === uid ? undefined : { refusal, until: trial.until };
    return now < entry.until && entry.version === version ? entry : undefined;
  }

  /** Whether no member has refused anything: then no shape has to be made. */
  get empty(): boolean {
    return this.#members.size === 0;
  }
}

/** The same text for pods that a member cannot tell apart: all of the spec but a pod's own name, and what overrides make of it. */
export function shapeOf({ metadata, spec }: Stored<Pod>): string {
  const overrides = metadata.annotations?.[OVERRIDES_ANNOTATION];
  return JSON.stringify([metadata.namespace, overrides, spec], (key, value: unknown) => {
    // A pod that has overflowed has its node before its member's scheduler is asked.
    if (key === "hostname" || key === "nodeName") return undefined;
    return typeof value === "string" && value.startsWith(TOKEN_VOLUME) ? TOKEN_VOLUME : value;
  });
}
