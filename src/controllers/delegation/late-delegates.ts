import { HOST_LABEL } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listPages } from "../../kube/list-pages.ts";
import { pods } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import type { Memories } from "./decisions/memory.ts";
import type { ActionOf, AskedMember, Observed } from "./decisions/model.ts";
import type { Exchange } from "./exchange.ts";
import { findDelegate } from "./find-delegate.ts";
import type { DelegationOptions } from "./options.ts";
import { shownInMember } from "./shown.ts";

type AskAction = ActionOf<"ask">;
type Context = ActionContext<ObjectKey>;

interface LateDelegatesOptions extends Pick<DelegationOptions, "registry" | "identity" | "clock"> {
  readonly memories: Memories;
  readonly exchange: Pick<Exchange, "tellOnce">;
}

/** What a member has said of a proxy's delegate. */
interface Answer {
  readonly asked: AskedMember;
  readonly has: boolean;
  /** Why it has said nothing; absent when it has. */
  readonly error?: unknown;
}

interface Asked {
  /** How many proxies it was asked for one by one. */
  singly: number;
  listing?: Listing;
}

interface Listing {
  /** Epoch ms. */
  readonly begunAt: number;
  /** Uids of the proxies whose delegates it has, and the store has not. */
  readonly unshown: Promise<ReadonlySet<string>>;
}

// A list has all that the host has in the member: that is for many proxies at once.
const FEW = 10;
// A member that is reachable mostly answers in less.
const QUIETLY_MS = 5000;

/** Finds delegates that the last requests of an earlier leader have made, and that no watch has shown yet. */
export class LateDelegates {
  readonly #options: LateDelegatesOptions;
  readonly #asked = new WeakMap<Member, Asked>();

  constructor(options: LateDelegatesOptions) {
    this.#options = options;
  }

  /**
   * Finds out which of the members has the proxy's delegate. All are asked at once, and what one says is noted when it says so. Unless one
   * has it, rejects with the KubeError of one that failed, when each has answered or failed: as long as nobody answers, nothing is known.
   */
  async ask({ proxyUid, members }: AskAction, context: Context): Promise<Shown<Observed> | undefined> {
    const told = await Promise.all(members.map((asked) => this.#answerOf(asked, proxyUid, context)));
    const answers = told.filter((answer) => answer !== undefined);
    const shown = answers
      .filter(({ has }) => has)
      .map(({ asked }) => shownInMember(asked.name, (pod) => ownerOf(pod)?.uid === proxyUid));
    const failed = mostPatient(answers);
    if (shown.length === 0 && failed !== undefined) {
      this.#tell(failed.asked, proxyUid, failed.error, context);
      throw failed.error;
    }
    return answers.length === 0 ? undefined : (observed) => shown.every((isShownBy) => isShownBy(observed));
  }

  /** Undefined when the member has left. */
  async #answerOf(asked: AskedMember, proxyUid: string, context: Context): Promise<Answer | undefined> {
    const { memories, registry } = this.#options;
    const member = registry.member(asked.name);
    if (member === undefined) return undefined;
    try {
      const has = await this.#has(member, proxyUid, asked.since, context);
      if (has) memories.noteUncertain(proxyUid, member.name);
      else memories.noteDenied(proxyUid, member.name);
      return { asked, has };
    } catch (error) {
      member.noteFailure(error);
      return { asked, has: false, error };
    }
  }

  async #has(member: Member, proxyUid: string, since: number, context: Context): Promise<boolean> {
    const asked = this.#asked.get(member) ?? { singly: 0 };
    this.#asked.set(member, asked);
    const find = async (): Promise<boolean> => (await findDelegate(member, proxyUid, context)) !== undefined;
    if (asked.singly >= FEW) {
      const unshown = await this.#unshown(member, asked, since, context.signal);
      // It was there when that was listed.
      return unshown.has(proxyUid) && (await find());
    }
    asked.singly += 1;
    try {
      return await find();
    } catch (error) {
      asked.singly -= 1;
      throw error;
    }
  }

  /** One list answers for all proxies whose earlier leaders' requests were over when it was begun. */
  #unshown(member: Member, asked: Asked, since: number, signal: AbortSignal): Listing["unshown"] {
    if (asked.listing !== undefined && asked.listing.begunAt >= since) return asked.listing.unshown;
    const listing = { begunAt: this.#options.clock.now(), unshown: this.#list(member, signal) };
    asked.listing = listing;
    listing.unshown.catch(() => {
      if (asked.listing === listing) delete asked.listing;
    });
    return listing.unshown;
  }

  async #list(member: Member, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const labelSelector = `${HOST_LABEL}=${this.#options.identity.id}`;
    const unshown = new Set<string>();
    for await (const page of listPages(member.client, pods, { labelSelector, signal, dropManagedFields: true })) {
      for (const pod of page) {
        const owner = ownerOf(pod)?.uid;
        if (owner !== undefined && !isShown(member, pod)) unshown.add(owner);
      }
    }
    return unshown;
  }

  #tell({ name, since }: AskedMember, proxyUid: string, error: unknown, { key }: Context): void {
    const { clock, exchange } = this.#options;
    if (!isKubeError(error) || clock.now() < since + QUIETLY_MS) return;
    const message = `${name}: may have the pod from before the controller started, and fails to say so: ${error.detail}`;
    exchange.tellOnce(key, proxyUid, "ClusterNotReady", message);
  }
}

function isShown({ delegates }: Member, { metadata }: Stored<Pod>): boolean {
  return delegates.get(objectKey(metadata))?.metadata.uid === metadata.uid;
}

/** Of the answers that failed, one that is to be waited for as long as any; the first of several. */
function mostPatient(answers: readonly Answer[]): Answer | undefined {
  const failures = answers.filter(({ error }) => error !== undefined);
  return failures.toSorted((a, b) => restMs(b.error) - restMs(a.error))[0];
}

/** How long a failed member wants to be left alone, in milliseconds. */
function restMs(error: unknown): number {
  return isKubeError(error) ? (error.retryAfterMs ?? 0) : 0;
}
