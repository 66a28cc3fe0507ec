import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";

/** A copy as it was seen when it was decided that it goes. */
export interface SeenCopy {
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** Where the copy is. */
export interface Deletion<T extends KubeObject> {
  readonly member: Member;
  readonly resource: Resource<T>;
  readonly copy: SeenCopy;
  readonly signal: AbortSignal;
}

/**
 * Deletes copies in members, and knows which of them may be on their way out. `Key` is what the controller decides on: one copy, or
 * several.
 */
export class CopyWriter<Key extends string> {
  readonly #onStays: (key: Key) => void;
  /** Uids of copies whose deletion was sent: no pod that comes now can count on them. */
  readonly #leaving = new Map<Key, Set<string>>();

  /** `onStays` hears of copies that were taken for leaving, and stay. */
  constructor(onStays: (key: Key) => void) {
    this.#onStays = onStays;
  }

  /** Whether the copy is on its way out, or may be. */
  isLeaving(key: Key, { metadata: { uid } }: Stored<KubeObject>): boolean {
    return this.#leaving.get(key)?.has(uid) === true;
  }

  /** The uids of those on their way out, of all copies that are there under the key. */
  leaving(key: Key, there: readonly Stored<KubeObject>[]): ReadonlySet<string> {
    const sent = this.#leaving.get(key);
    if (sent === undefined) return new Set();
    const uids = new Set(there.map(({ metadata }) => metadata.uid));
    for (const uid of sent) if (!uids.has(uid)) sent.delete(uid);
    return sent;
  }

  /** Nothing is left under the key, and nobody wants anything there. */
  forget(key: Key): void {
    this.#leaving.delete(key);
  }

  /** Deletes the copy unless it has changed since, or is gone. Rejects with KubeError. */
  async delete<T extends KubeObject>(key: Key, { member, resource, copy, signal }: Deletion<T>): Promise<void> {
    const { namespace = "", name, uid, resourceVersion } = copy;
    const leaving = this.#leaving.get(key) ?? new Set<string>();
    const wasLeaving = leaving.has(uid);
    this.#leaving.set(key, leaving.add(uid));
    try {
      await member.client.delete(resource, { namespace, name }, { uid, resourceVersion, signal });
    } catch (error) {
      if (isKubeError(error) && surelyStays(error, wasLeaving)) {
        leaving.delete(uid);
        this.#onStays(key);
      }
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    }
  }
}

/** Whether the copy is there as before, `wasLeaving` being that an earlier deletion may still happen. */
function surelyStays({ code, retryClass }: KubeError, wasLeaving: boolean): boolean {
  // The watch has yet to tell of its end.
  if (code === "NotFound") return false;
  // That the member has not seen, or not looked at, this request says nothing of the one before.
  if (retryClass === "retry") return !wasLeaving;
  return retryClass === "never";
}
