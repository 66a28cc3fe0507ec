import type { Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { secrets } from "../../kube/resources.ts";
import { cleanMember } from "../member/clean.ts";
import { storedConnection } from "../member/credentials.ts";
import { clusterId } from "../shared/reading.ts";
import type { HostContext } from "../shared/session.ts";
import type { RemovalContext } from "./objects.ts";

type LeavingContext = HostContext & Pick<RemovalContext, "remains">;

/** Cleans all members concurrently, since each waits for its namespaces. */
export async function leaveMembers(joined: readonly Stored<Cluster>[], context: LeavingContext): Promise<void> {
  const { host, signal } = context;
  const members = new Map<string, Stored<Cluster> | undefined>(joined.map((each) => [each.metadata.name, each]));
  for (const name of await storedMembers(host, signal)) members.set(name, members.get(name));
  const hostId = await clusterId(host, signal);
  const outcomes = await Promise.allSettled(
    [...members].map(([name, cluster]) => leaveMember(name, cluster, hostId, context)),
  );
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}

/** Returns the members with stored credentials: the only trace of a Cluster that was deleted without `unjoin`. */
async function storedMembers(host: ClusterClient, signal: AbortSignal): Promise<string[]> {
  const labelSelector = VIRTUAL_NODE_LABEL;
  const stored = await listAll(host, secrets, { namespace: SYSTEM_NAMESPACE, labelSelector, signal });
  return stored.flatMap(({ metadata }) => metadata.labels?.[VIRTUAL_NODE_LABEL] ?? []);
}

/** Cleans one member as far as its stored credentials permit. A failing member does not stop the others. */
async function leaveMember(
  name: string,
  cluster: Stored<Cluster> | undefined,
  hostId: string,
  context: LeavingContext,
): Promise<void> {
  const { signal, report, remains } = context;
  try {
    const member = await storedConnection(context, name, cluster);
    if (member === undefined) {
      remains(`${name}: everything: there are no credentials for it`);
      return;
    }
    await cleanMember(member.client, hostId, {
      signal,
      // The uninstallation deletes the credentials next.
      isLast: true,
      report,
      remains: (what) => remains(`${name}: ${what}`),
    });
  } catch (error) {
    if (!(error instanceof KubeError) || signal.aborted) throw error;
    remains(`${name}: everything: ${error.message}`);
  }
}
