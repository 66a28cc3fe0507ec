import type { Cluster } from "../api/cluster.ts";
import type { ObjectKey, Pod, Stored } from "../api/kubernetes.ts";
import type { Shard } from "../api/shards.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/event-bus.ts";
import type { Mutex } from "../runtime/mutex.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface MemberEvents<Member> {
  /** A delegate under this key was added, updated or deleted; `delegates.departed` returns a deleted one's last state. */
  readonly delegate: [member: Member, key: ObjectKey];
  readonly ended: [member: Member, delegate: Stored<Pod>];
  /** The member's nodes changed in a way that matters to placement. */
  readonly memberNodes: [member: Member];
  readonly responsive: [member: Member];
  /** The member became reachable or unreachable, readable or unreadable. */
  readonly connection: [member: Member];
}

export interface MemberOptions<Member> {
  readonly cluster: Stored<Cluster>;
  readonly client: ClusterClient;
  readonly hostId: string;
  /** The namespaces whose objects are read. Default: all. */
  readonly shard?: Shard;
  readonly events: Pick<Events<MemberEvents<Member>>, "emit">;
  /** Called with the uid of the cluster that answers; undefined when the credentials may not read it. */
  readonly onIdentity?: (uid: string | undefined) => void;
  /** Called when the member has another candidate. */
  readonly onCandidate?: () => void;
  /** Shared by all members, whose foreign usage is read one at a time. */
  readonly mutex?: Mutex;
  readonly clock: Clock;
  readonly log: Logger;
}
