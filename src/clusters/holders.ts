import type { ObjectKey } from "../api/kubernetes.ts";

/**
 * Which members have, or had, a delegate under a key: so that what is decided for one pod does not look at all members.
 * It may name more members than have one, never fewer.
 */
export class Holders {
  readonly #byKey = new Map<ObjectKey, readonly string[]>();
  /** Nearly every pod is in one member: those of a member share one list. */
  readonly #alone = new Map<string, readonly string[]>();

  /** A delegate under the key came, changed or went in the member. */
  note(key: ObjectKey, member: string): void {
    const known = this.#byKey.get(key);
    if (known?.includes(member) === true) return;
    this.#byKey.set(key, known === undefined ? this.#only(member) : [...known, member]);
  }

  of(key: ObjectKey): readonly string[] {
    return this.#byKey.get(key) ?? [];
  }

  /** Nothing of the key is left. */
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
