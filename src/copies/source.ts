import type { KubeObject, Stored } from "../api/kubernetes.ts";

/** An object of the host as a member is given it. */
export type Source<T extends KubeObject> =
  | { readonly state: "present"; readonly object: Stored<T> }
  /** The namespace was read without it, or the member is not given the object. */
  | { readonly state: "missing" }
  /** The namespace was not read yet, or cannot be: `message` says why. */
  | { readonly state: "unknown"; readonly message?: string };

/**
 * Objects as members are given them, each made once for the same inputs: the copier compares objects by identity.
 * `Inputs`: what a member's version depends on beside the object.
 */
export class PerMember<T extends KubeObject, Inputs extends readonly unknown[]> {
  #given = new WeakMap<Stored<T>, Map<string, { readonly inputs: Inputs; readonly source: Source<T> }>>();

  /** Returns the member's version. `make` gets the one that was made of other inputs. */
  of(
    object: Stored<T>,
    { member, inputs }: { readonly member: string; readonly inputs: Inputs },
    make: (before: Source<T> | undefined) => Source<T>,
  ): Source<T> {
    const known = this.#given.get(object) ?? new Map();
    const before = known.get(member);
    if (before?.inputs.every((input: unknown, index: number) => input === inputs[index]) === true) return before.source;
    const source = make(before?.source);
    this.#given.set(object, known.set(member, { inputs, source }));
    return source;
  }

  reset(): void {
    this.#given = new WeakMap();
  }
}
