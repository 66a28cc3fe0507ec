import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type Changed, type CopyChange, changeCopy } from "./change-copy.ts";
import { type Failing, Failures } from "./failures.ts";
import { type CopySpec, type Made, makeCopy } from "./make-copy.ts";

/** What copies are written with. */
export interface CopyWriterOptions<Key extends string> {
  readonly memberNamespaces: MemberNamespaces;
  readonly hostId: string;
  /** Hears of copies that were taken for leaving, and stay. */
  readonly onStays: (key: Key) => void;
  readonly clock: Pick<Clock, "now">;
}

/** A copy that a member is to have. */
export interface WantedCopy<T extends KubeObject> extends Omit<CopySpec<T>, "namespaces" | "hostId"> {
  /** What to make in its place when the member refuses it in these words; undefined: nothing else will do. */
  readonly instead?: (detail: string) => T | undefined;
}

/** How a copy in a member is to become. */
export interface WantedChange<T extends KubeObject> extends CopyChange<T> {
  /** The patch to send in its place when the member refuses it in these words; undefined: no other will do. */
  readonly instead?: (detail: string) => readonly object[] | undefined;
}

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
 * Makes, changes and deletes copies in members. Knows which of them fail to take one, and which copies may be on their way out. `Key` is
 * what the controller decides on: one copy, or several.
 */
export class CopyWriter<Key extends string> {
  readonly #options: CopyWriterOptions<Key>;
  readonly #failures: Failures<string>;
  /** Uids of copies whose deletion was sent: no pod that comes now can count on them. */
  readonly #leaving = new Map<Key, Set<string>>();

  constructor(options: CopyWriterOptions<Key>) {
    this.#options = options;
    this.#failures = new Failures(options.clock);
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

  /** Makes the copy, and its namespace where that is missing. Rejects with KubeError unless the answer is sure, or it goes on failing. */
  make<T extends KubeObject>({ instead, ...wanted }: WantedCopy<T>): Promise<Made | Failing> {
    const { memberNamespaces: namespaces, hostId } = this.#options;
    const make = (object: T): Promise<Made> => makeCopy({ ...wanted, namespaces, hostId, object });
    return this.#outlast(wanted, () => orInstead(make, wanted.object, instead));
  }

  /** Changes the copy. Rejects with KubeError unless the answer is sure, or it goes on failing. */
  change<T extends KubeObject>({ instead, ...wanted }: WantedChange<T>): Promise<Changed | Failing> {
    const change = (patch: readonly object[]): Promise<Changed> => changeCopy({ ...wanted, patch });
    return this.#outlast(wanted, () => orInstead(change, wanted.patch, instead));
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
        this.#options.onStays(key);
      }
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    }
  }

  #outlast<T extends KubeObject, Answer>(
    { member, resource, ref }: Pick<WantedCopy<T>, "member" | "resource" | "ref">,
    write: () => Promise<Answer>,
  ): Promise<Answer | Failing> {
    return this.#failures.outlast(`${resource.plural}/${ref.namespace}/${ref.name}`, member, write);
  }
}

/** Asks for what is wanted; and once for what will do, when that is refused. */
async function orInstead<Wanted, Answer extends Made | Changed>(
  ask: (wanted: Wanted) => Promise<Answer>,
  wanted: Wanted,
  instead: ((detail: string) => Wanted | undefined) | undefined,
): Promise<Answer> {
  const answer = await ask(wanted);
  const other = answer.type === "refused" ? instead?.(answer.detail) : undefined;
  return other === undefined ? answer : ask(other);
}

/** Whether the copy is there as before, `wasLeaving` being that an earlier deletion may still happen. */
function surelyStays({ code, retryClass }: KubeError, wasLeaving: boolean): boolean {
  // The watch has yet to tell of its end.
  if (code === "NotFound") return false;
  // That the member has not seen, or not looked at, this request says nothing of the one before.
  if (retryClass === "retry") return !wasLeaving;
  return retryClass === "never";
}
