import { jsonEqual } from "../../api/json.ts";
import { OVERRIDES_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { overrideObject } from "../../api/object-overrides.ts";
import type { Candidate } from "../../placement/candidate.ts";
import type { Source } from "../copying/model.ts";

interface Given<T extends KubeObject> {
  readonly labels: Readonly<Record<string, string>>;
  readonly source: Source<T>;
}

/** Whole objects with overrides as members are given them, each version made once: the copier compares objects by identity. */
export class ObjectsInMembers<T extends KubeObject> {
  readonly #given = new WeakMap<Stored<T>, Map<string, Given<T>>>();

  /** Returns the object with its author's overrides for the member, or why they do not fit. */
  of(object: Stored<T>, { name, labels }: Pick<Candidate, "name" | "labels">): Source<T> {
    if (object.metadata.annotations?.[OVERRIDES_ANNOTATION] === undefined) return { state: "present", object };
    const known = this.#given.get(object) ?? new Map<string, Given<T>>();
    const before = known.get(name);
    if (before !== undefined && jsonEqual(before.labels, labels)) return before.source;
    const overridden = overrideObject(object, { name, labels });
    const source: Source<T> =
      "problem" in overridden
        ? { state: "unknown", message: overridden.problem }
        : { state: "present", object: overridden.object };
    this.#given.set(object, known.set(name, { labels, source }));
    return source;
  }
}
