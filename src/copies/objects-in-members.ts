import { pathOfPointer, setAt } from "../api/json.ts";
import { OVERRIDES_ANNOTATION } from "../api/keys.ts";
import type { KubeObject, Stored } from "../api/kubernetes.ts";
import { memoized } from "../api/memoized.ts";
import { overrideObject } from "../api/object-overrides.ts";
import { PerMember, type Source } from "./source.ts";

/** A member's share of the object's replicas, and where the object has their number. */
export interface ShareOfObject {
  /** Undefined: the object is not divided. */
  readonly share: number | undefined;
  readonly pointer: string | undefined;
}

/** Whole objects with shares and overrides as members are given them. */
export class ObjectsInMembers<T extends KubeObject> {
  readonly #given = new PerMember<T, readonly [share: number | undefined, labels: string]>();
  readonly #toAll: (object: Stored<T>) => Stored<T>;

  /** `toAll` returns an object as it is given to members without overrides. Default: as it is. */
  constructor(toAll?: (object: Stored<T>) => Stored<T>) {
    this.#toAll = toAll === undefined ? (object) => object : memoized(toAll);
  }

  /** Returns the object with the member's share and its author's overrides for the member, or why they do not fit. */
  of(
    object: Stored<T>,
    { name, labels }: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
    { share, pointer = "" }: Partial<ShareOfObject> = {},
  ): Source<T> {
    const isOverridden = object.metadata.annotations?.[OVERRIDES_ANNOTATION] !== undefined;
    const ofAll = this.#toAll(object);
    if (!isOverridden && share === undefined) return { state: "present", object: ofAll };
    return this.#given.of(object, { member: name, inputs: [share, JSON.stringify(labels)] }, () => {
      const ofMember = share === undefined ? ofAll : setAt(ofAll, pathOfPointer(pointer), share);
      const overridden = overrideObject(ofMember, { name, labels });
      return "problem" in overridden
        ? { state: "unknown", message: overridden.problem }
        : { state: "present", object: overridden.object };
    });
  }
}
