import { HOST_LABEL, OWNER_ANNOTATION } from "../api/keys.ts";
import type { OwnerReference } from "../api/kubernetes.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import { namespaces } from "../kube/resources.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import type { Clock } from "../runtime/clock.ts";
import { unlessAborted } from "../runtime/unless-aborted.ts";
import type { Member } from "./member.ts";
import { SharedCreation } from "./shared-creation.ts";

// A namespace that is made again has another uid, and what names the old one as its owner is deleted as garbage.
const UID_HOLDS_MS = 5_000;
// Where namespaces may not be read: the member was joined before hosts read them. Each attempt takes two seconds, since an API server
// that has just been started says the same; that one is soon asked again. Doubled each time up to the maximum.
const ASK_AGAIN_MS = 5_000;
const ASK_AGAIN_MAX_MS = 5 * 60_000;

interface KnownUid {
  readonly until: number;
  readonly uid: Promise<string | undefined>;
}

/** The namespaces of members: what they lack is made when something is first created there. */
export class MemberNamespaces {
  readonly #identity: HostIdentity;
  readonly #clock: Pick<Clock, "now">;
  readonly #creations = new SharedCreation();
  /** The oldest first. */
  readonly #uids = new Map<string, KnownUid>();
  /** Members whose namespaces may not be read, and when they are asked again, `waitMs` after the last time; epoch ms. */
  readonly #unreadable = new Map<string, { readonly until: number; readonly waitMs: number }>();

  constructor(identity: HostIdentity, clock: Pick<Clock, "now">) {
    this.#identity = identity;
    this.#clock = clock;
  }

  /**
   * Does `create`; when its namespace turns out to be missing, makes that first, unless the Cluster forbids it. Then `isNew` is
   * true: nothing that was seen in a namespace of that name is there.
   */
  async createIn<T>(
    member: Member,
    namespace: string,
    signal: AbortSignal,
    create: (isNew: boolean) => Promise<T>,
  ): Promise<T> {
    const shared = keyOf(member, namespace);
    const seen = this.#creations.count;
    try {
      return await create(false);
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
      if (member.cluster.spec.createNamespaces === false) throw whyNotMade(error, member.name);
      await this.#creations.make(shared, seen, () => this.#create(member, namespace, signal));
      return await create(true);
    }
  }

  /**
   * What controls a delegate whose proxy has a controller: its namespace, which is there as long as it is. A ReplicaSet of the
   * member would take a pod that nobody controls for one of its own, and delete what it then has too many. Empty where the host may
   * not read namespaces. Rejects with KubeError: NotFound when there is no such namespace, Aborted when the signal fires.
   */
  async controllersOf(member: Member, name: string, signal: AbortSignal): Promise<OwnerReference[]> {
    const uid = await unlessAborted(this.#uidOf(member, name), signal, () => {
      const fields = { cluster: member.name, verb: "get", resource: `namespaces ${name}` } as const;
      return new KubeError("the caller gave up", { code: "Aborted", ...fields, cause: signal.reason });
    });
    return uid === undefined ? [] : [{ apiVersion: "v1", kind: "Namespace", name, uid, controller: true }];
  }

  #uidOf(member: Member, name: string): Promise<string | undefined> {
    const key = keyOf(member, name);
    const now = this.#clock.now();
    if (now < (this.#unreadable.get(member.name)?.until ?? 0)) return Promise.resolve(undefined);
    const known = this.#uids.get(key);
    if (known !== undefined && now < known.until) return known.uid;
    // Several wait for the answer: none of them can call it off.
    const uid = this.#read(member, name).catch((error: unknown) => {
      if (this.#uids.get(key)?.uid === uid) this.#uids.delete(key);
      if (!isKubeError(error, "Forbidden")) throw error;
      this.#noteUnreadable(member.name);
      return undefined;
    });
    this.#remember(key, { until: now + UID_HOLDS_MS, uid });
    return uid;
  }

  async #read(member: Member, name: string): Promise<string | undefined> {
    const { metadata } = await member.client.get(namespaces, { name });
    this.#unreadable.delete(member.name);
    return metadata.uid;
  }

  /** Pods of several namespaces that were told so together are told once. */
  #noteUnreadable(member: string): void {
    const now = this.#clock.now();
    const { until = 0, waitMs = ASK_AGAIN_MS / 2 } = this.#unreadable.get(member) ?? {};
    if (now < until) return;
    const nextMs = Math.min(2 * waitMs, ASK_AGAIN_MAX_MS);
    this.#unreadable.set(member, { until: now + nextMs, waitMs: nextMs });
  }

  #remember(key: string, known: KnownUid): void {
    this.#uids.delete(key);
    this.#uids.set(key, known);
    const now = this.#clock.now();
    for (const [oldest, { until }] of this.#uids) {
      if (now < until) break;
      this.#uids.delete(oldest);
    }
  }

  async #create(member: Member, name: string, signal: AbortSignal): Promise<void> {
    const { id, name: cluster } = this.#identity;
    const owner = JSON.stringify({ cluster, namespace: "", name, uid: "" });
    const metadata = { name, labels: { [HOST_LABEL]: id }, annotations: { [OWNER_ANNOTATION]: owner } };
    try {
      await member.client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata }, { signal });
    } catch (error) {
      if (!isKubeError(error, "AlreadyExists")) throw error;
    }
    // Who asked before may still be told that there is none.
    this.#uids.delete(keyOf(member, name));
  }
}

function keyOf(member: Member, namespace: string): string {
  return `${member.name}/${namespace}`;
}

/** The answer of a member that lacks a namespace which is not to be made there, with what is to be done about it. */
export function whyNotMade(error: KubeError, member: string): KubeError {
  const { code, cluster, verb, resource, detail, details } = error;
  if (!/^namespaces ".*" not found$/.test(detail)) return error;
  const why = `spec.createNamespaces of Cluster ${member} is false: make the namespace there, or set the field to true`;
  const fields = { code, cluster, verb, resource, cause: error, ...(details === undefined ? {} : { details }) };
  return new KubeError(`${detail}, and ${why}`, fields);
}
