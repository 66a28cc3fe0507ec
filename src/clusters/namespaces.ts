import { HOST_LABEL, OWNER_ANNOTATION } from "../api/keys.ts";
import type { OwnerReference } from "../api/kubernetes.ts";
import { setUntilEnded } from "../api/latest-entries.ts";
import { unlessAborted } from "../kube/abort.ts";
import { ignoring, isKubeError, KubeError } from "../kube/errors.ts";
import { isNamespaceMissing } from "../kube/messages.ts";
import { namespaces } from "../kube/resources.ts";
import { type HostIdentity, ownerIn } from "../pods/delegate.ts";
import { backoffMs } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Member } from "./member.ts";
import { SingleFlight } from "./single-flight.ts";

// A re-created namespace has another uid, and the garbage collector deletes objects with the old one as owner.
const UID_HOLDS_MS = 5_000;
// Retry delay for a member that forbids reading namespaces, since an older release joined it. Each attempt takes two seconds,
// because a starting API server sends the same refusal.
const ASK_AGAIN = { initialMs: 5_000, maxMs: 5 * 60_000 };

interface KnownUid {
  readonly until: number;
  readonly uid: Promise<string | undefined>;
}

/** The namespaces of members. Creates a missing one when an object is first created in it. */
export class MemberNamespaces {
  readonly #identity: HostIdentity;
  readonly #clock: Pick<Clock, "now">;
  readonly #creations = new SingleFlight();
  readonly #uids = new Map<string, KnownUid>();
  /** Members that forbid reading namespaces, and when they are asked again; epoch ms. */
  readonly #unreadable = new Map<string, { readonly until: number; readonly refusals: number }>();

  constructor(identity: HostIdentity, clock: Pick<Clock, "now">) {
    this.#identity = identity;
    this.#clock = clock;
  }

  /**
   * Runs `create`, after the missing namespace if need be: with `isNew` objects seen in an earlier one of that name
   * are gone.
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

  /** A ReplicaSet of the member would adopt a pod without a controller: its namespace owns the delegate instead. */
  async controllersOf(member: Member, name: string, signal: AbortSignal): Promise<OwnerReference[]> {
    const uid = await unlessAborted(this.#uidOf(member, name), signal, () => {
      const fields = { cluster: member.name, verb: "get", resource: "namespaces", objectName: name } as const;
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
    // Several callers share the response, so no signal aborts the request.
    const uid = this.#read(member, name).catch((error: unknown) => {
      if (this.#uids.get(key)?.uid === uid) this.#uids.delete(key);
      if (!isKubeError(error, "Forbidden")) throw error;
      this.#noteUnreadable(member.name);
      return undefined;
    });
    setUntilEnded(this.#uids, key, { until: now + UID_HOLDS_MS, uid }, ({ until }) => until <= now);
    return uid;
  }

  async #read(member: Member, name: string): Promise<string | undefined> {
    const { metadata } = await member.client.get(namespaces, { name });
    this.#unreadable.delete(member.name);
    return metadata.uid;
  }

  #noteUnreadable(member: string): void {
    const now = this.#clock.now();
    const { until = 0, refusals = 0 } = this.#unreadable.get(member) ?? {};
    if (now < until) return;
    this.#unreadable.set(member, { until: now + backoffMs(refusals, ASK_AGAIN), refusals: refusals + 1 });
  }

  async #create(member: Member, name: string, signal: AbortSignal): Promise<void> {
    const owner = JSON.stringify(ownerIn(this.#identity, namespaces, { name, uid: "" }));
    const metadata = {
      name,
      labels: { [HOST_LABEL]: this.#identity.id },
      annotations: { [OWNER_ANNOTATION]: owner },
    };
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata };
    await ignoring(member.client.create(namespaces, namespace, { signal }), "AlreadyExists");
    // A read in flight may still find the namespace missing.
    this.#uids.delete(keyOf(member, name));
  }
}

function keyOf(member: Member, namespace: string): string {
  return `${member.name}/${namespace}`;
}

/** Names the remedy for a namespace that the Cluster forbids to create. */
export function whyNotMade(error: KubeError, member: string): KubeError {
  const { code, cluster, verb, resource, detail, details } = error;
  if (!isNamespaceMissing(detail)) return error;
  const why = `spec.createNamespaces of Cluster ${member} is false: make the namespace there, or set the field to true`;
  const fields = { code, cluster, verb, resource, cause: error, ...(details === undefined ? {} : { details }) };
  return new KubeError(`${detail}, and ${why}`, fields);
}
