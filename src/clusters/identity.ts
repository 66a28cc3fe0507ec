import type { Cluster } from "../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { Stored } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { namespaces } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";

/** What a member's identity is judged by. */
export interface IdentityOptions {
  /** Of the member, as it is: not one that waits for the identity. */
  readonly client: ClusterClient;
  /** As last seen. When it records no uid of its member, nothing is asked. */
  readonly cluster: () => Stored<Cluster>;
  readonly clock: Clock;
  /** `problem` has another value. */
  readonly onChange: () => void;
}

/** A question under way. */
interface Asking {
  /** How often the identity had been doubted when it began. */
  readonly doubts: number;
  readonly answer: Promise<void>;
}

// Several watches that begin again together ask once.
const FRESH_MS = 1_000;
const LOOK_EVERY_MS = 60_000;
const TIMEOUT_MS = 10_000;
// It is shown to people: what looks otherwise is none.
const UID = /^[\w-]{1,64}$/;

/**
 * Whether a connection leads to the cluster that has joined: by the uid of its namespace kube-system, which lives exactly as
 * long as the cluster. What another cluster does not have is not gone from the member.
 */
export class Identity {
  readonly #options: IdentityOptions;
  readonly #abort = new AbortController();
  #problem: string | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Asking | undefined;
  /** How often it was doubted: an answer to what was asked before the last time says nothing of now. */
  #doubts = 0;
  /** `#doubts` when the last question began that was answered. */
  #answeredAfter = 0;
  #freshMs = FRESH_MS;
  #mistaken = new AbortController();

  constructor(options: IdentityOptions) {
    this.#options = options;
  }

  /** Why it is not that cluster, and what to do; undefined: it is, or nobody can tell. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Fires when another cluster is found to answer: what began before may lead there. */
  get mistaken(): AbortSignal {
    return this.#mistaken.signal;
  }

  /** Resolves when `problem` is as the server says now. Rejects with KubeError when it does not say. */
  async confirm(): Promise<void> {
    if (this.#problem === undefined && this.#options.clock.now() - this.#askedAt < this.#freshMs) return;
    await this.#answer();
    // Doubted meanwhile. Once more only: where requests keep failing, nobody would ever be done.
    if (this.#answeredAfter < this.#doubts) await this.#answer();
  }

  /** The member answers: it is asked who it is, unless it was lately. */
  look(): void {
    if (this.#problem === undefined && this.#options.clock.now() - this.#askedAt < LOOK_EVERY_MS) return;
    // When it does not say, what is known stands: its watches ask again as they begin.
    this.confirm().catch(() => {});
  }

  /** A request was not answered: the next connection may lead elsewhere. */
  doubt(): void {
    this.#askedAt = Number.NEGATIVE_INFINITY;
    this.#doubts += 1;
  }

  stop(): void {
    this.#abort.abort();
  }

  /** Shares a question that is under way, unless there was doubt since it began. */
  #answer(): Promise<void> {
    const doubts = this.#doubts;
    if (this.#asking?.doubts === doubts) return this.#asking.answer;
    const asking: Asking = {
      doubts,
      answer: this.#ask(doubts).finally(() => {
        if (this.#asking === asking) this.#asking = undefined;
      }),
    };
    this.#asking = asking;
    return asking.answer;
  }

  async #ask(doubts: number): Promise<void> {
    const { client, cluster, clock } = this.#options;
    const begun = { at: clock.now(), doubts };
    if (recordedUid(cluster()) === undefined) {
      this.#answered(undefined, begun);
      return;
    }
    const request = { signal: this.#abort.signal, timeoutMs: TIMEOUT_MS, outOfTurn: true };
    try {
      const there = await client.find(namespaces, { name: "kube-system" }, request);
      this.#answered(this.#compare(there?.metadata.uid), begun);
    } catch (error) {
      // Access that was given before this was asked does not permit it.
      if (!isKubeError(error, "Forbidden")) throw error;
      // Such a refusal is not news, and each takes the client seconds to believe.
      this.#answered(undefined, begun, LOOK_EVERY_MS);
    }
  }

  /** It is compared with what is recorded by now: the Cluster may have changed meanwhile. */
  #compare(uid: string | undefined): string | undefined {
    const cluster = this.#options.cluster();
    const expected = recordedUid(cluster);
    if (expected === undefined || uid === expected) return undefined;
    const isUid = uid !== undefined && UID.test(uid);
    const found = isUid ? `has uid ${uid}` : "has no uid";
    const { name } = cluster.metadata;
    const rebuilt = `kubectl annotate --overwrite clusters.legation.dev ${name} ${MEMBER_UID_ANNOTATION}=${isUid ? uid : "UID"}`;
    return (
      `another cluster answers: its namespace kube-system ${found}, that of the member has ${expected}; correct the server and ` +
      `credentials in Secret ${SYSTEM_NAMESPACE}/${cluster.spec.credentialsSecret.name}, or, when the member was built anew and none of its pods runs any ` +
      `more, run \`${rebuilt}\``
    );
  }

  #answered(
    problem: string | undefined,
    begun: { readonly at: number; readonly doubts: number },
    freshMs = FRESH_MS,
  ): void {
    // A later question has been answered already.
    if (begun.doubts < this.#answeredAfter) return;
    this.#answeredAfter = begun.doubts;
    if (begun.doubts === this.#doubts) {
      this.#askedAt = begun.at;
      this.#freshMs = freshMs;
    }
    if (problem === this.#problem) return;
    this.#problem = problem;
    if (problem === undefined) this.#mistaken = new AbortController();
    else this.#mistaken.abort(new Error(problem));
    this.#options.onChange();
  }
}

/** The uid that a Cluster records of its member's namespace kube-system. */
export function recordedUid({ metadata }: Stored<Cluster>): string | undefined {
  return metadata.annotations?.[MEMBER_UID_ANNOTATION];
}
