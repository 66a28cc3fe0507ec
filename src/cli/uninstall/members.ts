import type { Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list-pages.ts";
import { secrets } from "../../kube/resources.ts";
import { clusterId } from "../identity.ts";
import { cleanMember } from "../member/clean.ts";
import { storedConnection } from "../unjoin/unjoin.ts";
import type { UninstallContext } from "./uninstall.ts";

/** Cleans all members at once, since each waits for its namespaces; what is still in them, and why. */
export async function leaveMembers(
  joined: readonly Stored<Cluster>[],
  context: UninstallContext,
): Promise<readonly string[]> {
  const { host, signal } = context;
  const members = new Map<string, Stored<Cluster> | undefined>(joined.map((each) => [each.metadata.name, each]));
  for (const name of await storedMembers(host, signal)) members.set(name, members.get(name));
  const hostId = await clusterId(host, signal);
  const outcomes = await Promise.allSettled(
    [...members].map(([name, cluster]) => leaveMember(name, cluster, hostId, context)),
  );
  return outcomes.flatMap((outcome) => {
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
}

/** The members whose credentials are stored: whose Cluster was deleted without `unjoin` has no other trace on the host. */
async function storedMembers(host: ClusterClient, signal: AbortSignal): Promise<string[]> {
  const labelSelector = VIRTUAL_NODE_LABEL;
  const stored = await listAll(host, secrets, { namespace: SYSTEM_NAMESPACE, labelSelector, signal });
  return stored.flatMap(({ metadata }) => metadata.labels?.[VIRTUAL_NODE_LABEL] ?? []);
}

/** Cleans one member as far as its stored credentials go; a member that does not answer must not stop the rest. */
async function leaveMember(
  name: string,
  cluster: Stored<Cluster> | undefined,
  hostId: string,
  context: UninstallContext,
): Promise<string[]> {
  try {
    const member = await storedConnection(context, name, cluster);
    if (member === undefined) return [`${name}: everything: there are no credentials for it`];
    const { removed, remained } = await cleanMember(member.client, hostId, context.signal);
    for (const what of removed) context.report(`${name}: ${what} removed`);
    return remained.map((what) => `${name}: ${what}`);
  } catch (error) {
    if (!(error instanceof KubeError) || context.signal.aborted) throw error;
    return [`${name}: everything: ${error.message}`];
  }
}
