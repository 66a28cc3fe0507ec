import type { Cluster } from "../../api/cluster.ts";
import { RELEASED_CONDITION } from "../../api/cluster-status.ts";
import { CLUSTER_FINALIZER, HOST_LABEL, WHOLE_KEY } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { clusters, resourceOfType } from "../../api/resources.ts";
import { counted } from "../../api/wording.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import type { Resource } from "../../kube/resources.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { removeAccessCredentials } from "../member/access.ts";
import { type CleaningContext, cleanMember } from "../member/clean.ts";
import { findCredentials, removeCredentials, storedConnection } from "../member/credentials.ts";
import { identifyMember, notThatMember, otherJoined } from "../member/identity.ts";
import { removeVirtualNode } from "../member/virtual-node.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import { Failure } from "../shared/failure.ts";
import { clusterId, listClusters, notJoined, readable } from "../shared/reading.ts";
import { dropFinalizer, remove } from "../shared/removal.ts";
import { until } from "../shared/wait.ts";
import { emptyMember, type UnjoinContext, type UnjoinOptions } from "./drain.ts";

export interface Unjoined {
  readonly name: string;
  /** Objects that remain in the member, and why. */
  readonly remained: readonly string[];
  /** An operator's Secrets with credentials for the member, which stay on the host, and why they count as an operator's. */
  readonly kept: readonly string[];
}

/** Takes a member out. Safe to repeat until nothing remains. */
export async function unjoin(options: UnjoinOptions, context: UnjoinContext): Promise<Unjoined> {
  const { name, force } = options;
  const { host, signal, report } = context;
  const hostId = await clusterId(host, signal);
  const cluster = await host.find(clusters, { name }, { signal });
  const stored = await findCredentials(host, name, cluster, signal);
  const withKubeconfig = `legation unjoin ${name} --member-kubeconfig FILE`;
  // The name may be joined or applied again while this command runs.
  const refuseSuccessor = async (): Promise<void> => {
    const found = await host.find(clusters, { name }, { signal });
    if (found === undefined || found.metadata.uid === cluster?.metadata.uid) return;
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem:
        `was made again while it was leaving (its uid is ${found.metadata.uid} now): its virtual node, its credentials and ` +
        "its access in the member are left as they are",
      remedy:
        "when it shall leave, stop whatever makes it (GitOps, another `legation join`), then run the command again",
    });
  };
  const member = context.member ?? (await storedConnection(context, name, cluster));
  if (cluster === undefined && member === undefined && stored.length === 0) {
    const otherwise = "to clean a member that was left behind, add --member-kubeconfig FILE";
    throw notJoined(name, await listClusters(host, signal), otherwise);
  }
  if (context.member !== undefined) {
    const asked = { host, member: context.member.client, hostId, name };
    const relation = await identifyMember(asked, cluster, signal);
    // Without a Cluster an interrupted join may have left half a member.
    const mayBeIt = relation.other === undefined && (cluster === undefined || force);
    if (!relation.isMember && !mayBeIt) {
      const or = "leave out --member-kubeconfig when you gave the host credentials of your own";
      throw notThatMember(asked, cluster, relation, or);
    }
  }

  await emptyMember(options, context);
  if (cluster !== undefined) await removeCluster(cluster, options, context);
  await refuseSuccessor();
  await removeVirtualNode(host, name, signal);
  if (cluster !== undefined) report(`${host.cluster}: Cluster ${name} removed`);

  // Users may not act in the member while it is cleaned.
  const removal = removeAccessCredentials(name, context);
  await (cluster?.spec.access === undefined ? readable(removal) : removal);
  // The stored credentials go last.
  const delegated = (await listDelegatedTypes(host, signal)).map(resourceOfType);
  const types = [...WHOLE_TYPES.map(({ resource }) => resource), ...delegated];
  const all = async (why: string): Promise<readonly string[]> => [
    `everything${await wholeObjects(host, types, signal)}: ${why}`,
  ];
  const isReachedByAgent = cluster?.spec.agent !== undefined;
  const remained =
    member === undefined
      ? await all(isReachedByAgent ? `only its agent reaches it; \`${withKubeconfig}\` removes it` : NO_CREDENTIALS)
      : await cleanUp(member.client, hostId, { ...context, name, types, refuseSuccessor }).catch((error: unknown) => {
          if (!(error instanceof KubeError) || signal.aborted) throw error;
          if (force) return all(error.message);
          throw new Failure("failure", {
            object: `Cluster ${name}`,
            problem: `has left the host, but the member could not be cleaned: ${error.message}`,
            remedy: `run \`${withKubeconfig}\` when it answers, or add --force if it never will`,
            cause: error,
          });
        });
  await refuseSuccessor();
  const kept = await removeCredentials(host, name, stored, { signal, report });
  return { name, remained, kept };
}

const NO_CREDENTIALS = "there are no credentials for it";

/** Deletes the Cluster and waits until the controller lets it go; with `force` no longer than that. */
async function removeCluster(
  cluster: Stored<Cluster>,
  { force, timeoutMs }: UnjoinOptions,
  { host, signal, report }: UnjoinContext,
): Promise<void> {
  const { name, uid } = cluster.metadata;
  report(`${host.cluster}: Cluster ${name} is being deleted; waiting until the controller lets it go`);
  await remove(host, clusters, { name }, { uid, signal });
  let kept: string | undefined;
  const isGone = async (): Promise<boolean> => {
    const found = await host.find(clusters, { name }, { signal });
    if (found?.metadata.uid !== uid) return true;
    const why = found.status?.conditions?.find(({ type }) => type === RELEASED_CONDITION)?.message ?? kept;
    if (why !== kept) report(`${host.cluster}: the controller keeps Cluster ${name}: ${why}`);
    kept = why;
    return false;
  };
  if (await until(isGone, { timeoutMs, signal })) return;
  if (force) {
    await dropFinalizer(host, clusters, cluster, CLUSTER_FINALIZER, signal);
    return;
  }
  const [why, remedy] =
    kept === undefined
      ? ["", "check that `legation controller` runs and run the command again, or add --force to go on without it"]
      : [
          `: ${kept}`,
          "run the command again when the member answers, or add --force when nothing runs there or never will again",
        ];
  throw new Failure("notReady", {
    object: `Cluster ${name}`,
    problem: `is being deleted, but the controller did not let it go within ${timeoutMs / 1000} s${why}`,
    remedy,
  });
}

/** Removes what this host made in the member. Resolves to what remains there. */
async function cleanUp(
  member: ClusterClient,
  hostId: string,
  { name, ...context }: UnjoinContext & Pick<CleaningContext, "types" | "refuseSuccessor"> & { readonly name: string },
): Promise<readonly string[]> {
  const { host, signal, report } = context;
  // The member joined again before it was clean, or twice: its objects are the other Cluster's.
  const other = await otherJoined({ host, member, hostId, name }, signal);
  if (other !== undefined) return [`everything: it has joined as ${other}, too, and leaves with that`];
  const remained: string[] = [];
  const remains = (what: string): void => {
    remained.push(what);
    report(`${name}: remains: ${what}`);
  };
  report(`${name}: looking for what this host made there`);
  await cleanMember(member, hostId, { ...context, remains });
  return remained;
}

/** Returns how many objects the member may have copies of, for a member that cannot be asked. */
async function wholeObjects(
  host: ClusterClient,
  types: readonly Resource<KubeObject>[],
  signal: AbortSignal,
): Promise<string> {
  const labelSelector = `${WHOLE_KEY},!${HOST_LABEL}`;
  const found = await Promise.all(types.map((type) => readable(listAll(host, type, { labelSelector, signal }))));
  const count = found.flatMap((objects) => objects ?? []).length;
  return count === 0 ? "" : `, with the copies of up to ${counted(count, "whole object")}`;
}
