import type { ObjectKey } from "../api/kubernetes.ts";

/** An index from key to the members that have, or had, a delegate under it. May name too many, never too few. */
export class DelegateIndex {
  readonly #byKey = new Map<ObjectKey, readonly string[]>();
  /** Nearly every pod is in one member. */
  readonly #alone = new Map<string, readonly string[]>();

  note(key: ObjectKey, member: string): void {
    const known = this.#byKey.get(key);
    if (known?.includes(member) === true) return;
    this.#byKey.set(key, known === undefined ? this.#only(member) : [...known, member]);
  }

  of(key: ObjectKey): readonly string[] {
    return this.#byKey.get(key) ?? [];
  }

  forget(key: ObjectKey): void {
    this.#byKey.delete(key);
  }

  #only(member: string): readonly string[] {
    let list = this.#alone.get(member);
    if (list === undefined) {
      list = [member];
      this.#alone.set(member, list);
    }
    return list;
  }
}
