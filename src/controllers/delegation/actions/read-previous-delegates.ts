import { defined } from "../../../api/defined.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { yieldToEventLoop } from "../../../kube/event-loop.ts";
import { listPages } from "../../../kube/list.ts";
import { pods } from "../../../kube/resources.ts";
import { delegateSelector, madeByHost, ownerOf } from "../../../pods/delegate.ts";
import { isDeleting } from "../../../pods/pod-state.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import type { ReadStore } from "../../../runtime/store.ts";
import type { Memories } from "../../../scheduling/memories.ts";
import type { ActionOf, AskedMember } from "../decision/decision.ts";
import type { View } from "../decision/view.ts";
import type { ActionOptions, Context } from "../options.ts";
import type { DelegateSync } from "./delegate-sync.ts";
import { expectInMember } from "./expectations.ts";
import { findDelegate } from "./restore-delegate-marks.ts";

type ReadAction = ActionOf<"readPreviousDelegate">;

interface PreviousLeaderOptions extends Pick<ActionOptions, "registry" | "identity" | "clock"> {
  readonly memories: Memories;
  readonly proxies: Pick<ReadStore<Pod>, "get">;
  readonly sync: Pick<DelegateSync, "tellOnce">;
}

type Delegate = Stored<Pod> | undefined;
/** Uids of proxies whose delegates the member has and its store lacks. */
type Unshown = ReadonlySet<string>;

interface Sent {
  readonly member: Member;
  readonly asked: AskedMember;
  said: Answer<Delegate> | Answer<Unshown>;
}

interface Failure {
  readonly asked: AskedMember;
  readonly error: unknown;
}

interface Asked {
  singly: number;
  listing?: Listing;
}

interface Listing {
  /** Epoch ms. */
  readonly begunAt: number;
  readonly unshown: Answer<Unshown>;
}

class Answer<T> {
  outcome: PromiseSettledResult<T> | undefined;
  readonly come: Promise<void>;

  constructor(answer: Promise<T>) {
    const settle = (outcome: PromiseSettledResult<T>): void => {
      this.outcome = outcome;
    };
    this.come = answer.then(
      (value) => settle({ status: "fulfilled", value }),
      (reason: unknown) => settle({ status: "rejected", reason }),
    );
  }
}

// A list returns all of the host's delegates in the member: worth it for many proxies only.
const FEW = 10;
// Most reachable members answer sooner.
const QUIETLY_MS = 5000;

/** Finds delegates that the previous leader's last requests created and that no watch has shown yet. */
export class PreviousLeader {
  readonly #options: PreviousLeaderOptions;
  readonly #asked = new WeakMap<Member, Asked>();

  constructor(options: PreviousLeaderOptions) {
    this.#options = options;
  }

  /** Asks all members at once. Unless one has the delegate, rejects with a failed request after all have answered. */
  async readDelegate({ proxyUid, members }: ReadAction, context: Context): Promise<Expectation<View> | undefined> {
    const version = this.#versionOf(context.key);
    const sent: Sent[] = [];
    for (const asked of members) {
      const member = this.#options.registry.member(asked.name);
      if (member !== undefined) sent.push({ member, asked, said: this.#send(member, asked, proxyUid, context) });
    }
    await answersTo(sent);
    // A list may be old by now, so the delegate is read.
    const listed = sent.filter(({ said }) => isListed(said, proxyUid));
    for (const one of listed) one.said = new Answer(this.#find(one.member, proxyUid, context));
    if (listed.length > 0) await answersTo(listed);
    const { expectations, failure } = this.#note(sent, proxyUid);
    if (expectations.length === 0 && failure !== undefined) {
      this.#tell(failure, proxyUid, context);
      if (this.#versionOf(context.key) !== version) return () => true;
      throw failure.error;
    }
    return sent.length === 0 ? undefined : (observed) => expectations.every((isMet) => isMet(observed));
  }

  #send(member: Member, { since }: AskedMember, proxyUid: string, context: Context): Sent["said"] {
    const asked = this.#asked.get(member) ?? { singly: 0 };
    this.#asked.set(member, asked);
    if (asked.singly >= FEW) return this.#unshown(member, asked, since, context.signal);
    asked.singly += 1;
    const found = this.#find(member, proxyUid, context);
    found.catch(() => {
      asked.singly -= 1;
    });
    return new Answer(found);
  }

  #note(
    sent: readonly Sent[],
    proxyUid: string,
  ): { readonly expectations: Expectation<View>[]; readonly failure?: Failure } {
    const { memories, registry } = this.#options;
    const expectations: Expectation<View>[] = [];
    const failures: Failure[] = [];
    // The proxy may have gone meanwhile.
    const isGone = memories.of(proxyUid).fresh;
    for (const { member, asked, said } of sent) {
      // Or the member was reconnected, left, or has another identity.
      if (registry.member(member.name) !== member || member.mistaken !== undefined) continue;
      const { outcome } = said;
      if (outcome?.status === "rejected") failures.push({ asked, error: outcome.reason });
      if (outcome?.status !== "fulfilled" || isGone) continue;
      if (outcome.value === undefined || isList(outcome.value)) {
        memories.noteConfirmedAbsent(proxyUid, member.name);
        continue;
      }
      memories.noteUncertain(proxyUid, member.name);
      expectations.push(expectInMember(member.name, isOf(proxyUid)));
    }
    const failure = mostPatient(failures);
    return { expectations, ...defined({ failure }) };
  }

  async #find(member: Member, proxyUid: string, context: Context): Promise<Delegate> {
    try {
      return await findDelegate(member, proxyUid, context);
    } catch (error) {
      member.noteFailure(error);
      throw error;
    }
  }

  /** Lists once for all proxies whose previous leader's requests had ended by then. */
  #unshown(member: Member, asked: Asked, since: number, signal: AbortSignal): Answer<Unshown> {
    if (asked.listing !== undefined && asked.listing.begunAt >= since) return asked.listing.unshown;
    const begunAt = this.#options.clock.now();
    const unshown = this.#list(member, signal);
    const listing = { begunAt, unshown: new Answer(unshown) };
    asked.listing = listing;
    unshown.catch((error: unknown) => {
      member.noteFailure(error);
      if (asked.listing === listing) delete asked.listing;
    });
    return listing.unshown;
  }

  async #list(member: Member, signal: AbortSignal): Promise<Unshown> {
    const { id } = this.#options.identity;
    const labelSelector = delegateSelector(id);
    const unshown = new Set<string>();
    for await (const page of listPages(member.client, pods, { labelSelector, signal, dropManagedFields: true })) {
      for (const pod of page) {
        const owner = madeByHost(pod, id) ? ownerOf(pod)?.uid : undefined;
        if (owner !== undefined && !isShown(member, pod)) unshown.add(owner);
      }
    }
    return unshown;
  }

  #versionOf(key: ObjectKey): string | undefined {
    return this.#options.proxies.get(key)?.metadata.resourceVersion;
  }

  #tell({ asked: { name, since }, error }: Failure, proxyUid: string, { key }: Context): void {
    const { clock, sync, proxies } = this.#options;
    if (!isKubeError(error) || clock.now() < since + QUIETLY_MS) return;
    const proxy = proxies.get(key);
    if (proxy?.metadata.uid !== proxyUid || isDeleting(proxy)) return;
    const message = `${name}: may have the pod from before the controller started, and fails to say so: ${error.detail}`;
    sync.tellOnce(key, proxyUid, "ClusterNotReady", message);
  }
}

function isShown({ delegates }: Member, { metadata }: Stored<Pod>): boolean {
  return delegates.get(objectKey(metadata))?.metadata.uid === metadata.uid;
}

function isOf(proxyUid: string): (delegate: Stored<Pod>) => boolean {
  return (delegate) => ownerOf(delegate)?.uid === proxyUid;
}

function isList(value: Delegate | Unshown): value is Unshown {
  return value instanceof Set;
}

function isListed({ outcome }: Sent["said"], proxyUid: string): boolean {
  return outcome?.status === "fulfilled" && isList(outcome.value) && outcome.value.has(proxyUid);
}

/** Waits for all answers, then yields: thousands of proxies may wait for the same list. */
async function answersTo(sent: readonly Sent[]): Promise<void> {
  for (const { said } of sent) if (said.outcome === undefined) await said.come;
  await yieldToEventLoop();
}

function mostPatient(failures: readonly Failure[]): Failure | undefined {
  return failures.toSorted((a, b) => restMs(b) - restMs(a))[0];
}

function restMs({ error }: Failure): number {
  return isKubeError(error) ? (error.retryAfterMs ?? 0) : 0;
}
