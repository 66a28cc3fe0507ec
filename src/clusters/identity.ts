import type { Cluster } from "../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { Stored } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { namespaces } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";

export interface IdentityOptions {
  readonly client: ClusterClient;
  /** Returns the Cluster. Without a recorded uid, any cluster is taken for the member. */
  readonly cluster: () => Stored<Cluster>;
  /** Called with the uid of the cluster that answers; undefined when the credentials may not read it. */
  readonly onFound: (uid: string | undefined) => void;
  readonly clock: Clock;
  readonly onChange: () => void;
}

interface Asking {
  readonly doubts: number;
  readonly answer: Promise<void>;
}

// Watches that reopen together share one check.
const IDENTITY_FRESH_MS = 1_000;
const CHECK_IDENTITY_MS = 60_000;
// A thousand members that were found at the same time are not all checked at the same time for ever.
const CHECK_JITTER = 0.25;
const TIMEOUT_MS = 10_000;
// The uid is printed, so anything else counts as none.
const UID = /^[\w-]{1,64}$/;

/** Checks that a connection leads to the cluster that joined, by the uid of its namespace kube-system. */
export class JoinedIdentity {
  readonly #options: IdentityOptions;
  readonly #abort = new AbortController();
  #problem: string | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Asking | undefined;
  /** The number of doubts so far. A check that began before the last one proves nothing. */
  #doubts = 0;
  /** `#doubts` at the start of the last completed check. */
  #answeredAfter = 0;
  #freshMs = IDENTITY_FRESH_MS;
  #checkMs = CHECK_IDENTITY_MS;
  #mistaken = new AbortController();

  constructor(options: IdentityOptions) {
    this.#options = options;
  }

  /** Returns undefined when the right cluster answers, or when unknown. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get mistaken(): AbortSignal {
    return this.#mistaken.signal;
  }

  /** Rejects with KubeError when the server does not answer. */
  async confirm(timeoutMs: number = TIMEOUT_MS): Promise<void> {
    if (this.#problem === undefined && this.#options.clock.now() - this.#askedAt < this.#freshMs) return;
    await this.#answer(timeoutMs);
    // Doubted meanwhile. Only one more check, or failing requests would repeat it forever.
    if (this.#answeredAfter < this.#doubts) await this.#answer(timeoutMs);
  }

  /** Confirms again after a doubt, a problem, or a minute. Undefined when that is not due. */
  confirmWhenDue(timeoutMs: number = TIMEOUT_MS): Promise<void> | undefined {
    if (this.#problem === undefined && this.#options.clock.now() - this.#askedAt < this.#checkMs) return undefined;
    this.#checkMs = CHECK_IDENTITY_MS * (1 - CHECK_JITTER * Math.random());
    return this.confirm(timeoutMs);
  }

  look(): void {
    // A failed check changes nothing; watches check again when they open.
    this.confirmWhenDue()?.catch(() => {});
  }

  /** Records a request without a response: the next connection may lead elsewhere. */
  doubt(): void {
    this.#askedAt = Number.NEGATIVE_INFINITY;
    this.#doubts += 1;
  }

  stop(): void {
    this.#abort.abort();
  }

  /** Shares a check in flight, unless there was doubt since it began. */
  #answer(timeoutMs: number): Promise<void> {
    const doubts = this.#doubts;
    if (this.#asking?.doubts === doubts) return this.#asking.answer;
    const asking: Asking = {
      doubts,
      answer: this.#ask(doubts, timeoutMs).finally(() => {
        if (this.#asking === asking) this.#asking = undefined;
      }),
    };
    this.#asking = asking;
    return asking.answer;
  }

  async #ask(doubts: number, timeoutMs: number): Promise<void> {
    const { client, clock, onFound } = this.#options;
    const begun = { at: clock.now(), doubts };
    const request = { signal: this.#abort.signal, timeoutMs, outOfTurn: true };
    try {
      const there = await client.find(namespaces, { name: "kube-system" }, request);
      onFound(there?.metadata.uid);
      // Stopped by that: no waiting request may reach a member that is refused.
      this.#abort.signal.throwIfAborted();
      this.#answered(this.#compare(there?.metadata.uid), begun);
    } catch (error) {
      // Members that joined with an older release do not grant this right.
      if (!isKubeError(error, "Forbidden")) throw error;
      onFound(undefined);
      this.#abort.signal.throwIfAborted();
      // Checked seldom, since the client repeats such a request for seconds.
      this.#answered(undefined, begun, CHECK_IDENTITY_MS);
    }
  }

  /** Compares the uid with the Cluster's current record, which may have changed meanwhile. */
  #compare(uid: string | undefined): string | undefined {
    const cluster = this.#options.cluster();
    const expected = recordedUid(cluster);
    if (expected === undefined || uid === expected) return undefined;
    const isKnown = uid !== undefined && isUid(uid);
    const found = isKnown ? `has uid ${uid}` : "has no uid";
    const { name } = cluster.metadata;
    const rebuilt = `kubectl annotate --overwrite clusters.legation.dev ${name} ${MEMBER_UID_ANNOTATION}=${isKnown ? uid : "UID"}`;
    return (
      `another cluster answers: its namespace kube-system ${found}, that of the member has ${expected}; correct the server and ` +
      `credentials in Secret ${SYSTEM_NAMESPACE}/${cluster.spec.credentialsSecret.name}, or, when the member was built anew and none of its pods runs any ` +
      `more, run \`${rebuilt}\``
    );
  }

  #answered(
    problem: string | undefined,
    begun: { readonly at: number; readonly doubts: number },
    freshMs = IDENTITY_FRESH_MS,
  ): void {
    // A later check completed first.
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

export function isUid(uid: string): boolean {
  return UID.test(uid);
}

export function recordedUid({ metadata }: Stored<Cluster>): string | undefined {
  return metadata.annotations?.[MEMBER_UID_ANNOTATION];
}
