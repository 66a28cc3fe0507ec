import { HOST_LABEL, WHOLE_KEY } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { clusters, resourceOfType } from "../../api/resources.ts";
import { counted } from "../../api/wording.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import type { Resource } from "../../kube/resources.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { removeAccessCredentials } from "../member/access.ts";
import { cleanMember } from "../member/clean.ts";
import { findCredentials, removeCredentials, storedConnection } from "../member/credentials.ts";
import { identifyMember, notThatMember, otherJoined } from "../member/identity.ts";
import { removeCluster, removeVirtualNode, successor } from "../member/remove-cluster.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import { Failure } from "../shared/failure.ts";
import { clusterId, listClusters, notJoined, readable } from "../shared/reading.ts";
import type { Connection } from "../shared/session.ts";
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
  const { name, force, timeoutMs } = options;
  const { host, signal, report } = context;
  const hostId = await clusterId(host, signal);
  const cluster = await host.find(clusters, { name }, { signal });
  const stored = await findCredentials(host, name, cluster, signal);
  const refuseSuccessor = (): Promise<void> => refuseSuccessorOf(host, { name, uid: cluster?.metadata.uid }, signal);
  const member = context.member ?? (await storedConnection(context, name, cluster));
  if (cluster === undefined && member === undefined && stored.length === 0) {
    throw notJoined(
      name,
      await listClusters(host, signal),
      "to clean a member that was left behind, add --member-kubeconfig FILE",
    );
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
  if (cluster !== undefined) {
    report(`${host.cluster}: Cluster ${name} is being deleted; waiting until the controller lets it go`);
    let held: string | undefined;
    const isGone = await removeCluster(host, cluster, {
      patienceMs: timeoutMs,
      force,
      onKept: (why) => {
        held = why;
        report(`${host.cluster}: the controller keeps Cluster ${name}: ${why}`);
      },
      signal,
    });
    if (!isGone) throw notReleased(name, timeoutMs, held);
    await refuseSuccessor();
    report(`${host.cluster}: Cluster ${name} removed`);
  } else {
    await refuseSuccessor();
    await removeVirtualNode(host, name, signal);
  }

  // Users may not act in the member while it is cleaned.
  const removal = removeAccessCredentials(name, context);
  await (cluster?.spec.access === undefined ? readable(removal) : removal);
  // The stored credentials go last.
  const why =
    cluster?.spec.agent === undefined
      ? "there are no credentials for it"
      : `only its agent reaches it; \`legation unjoin ${name} --member-kubeconfig FILE\` removes it`;
  const remained = await cleanUp(member, hostId, options, { ...context, refuseSuccessor, why });
  await refuseSuccessor();
  const kept = await removeCredentials(host, name, stored, { signal, report });
  return { name, remained, kept };
}

async function cleanUp(
  member: Connection | undefined,
  hostId: string,
  { name, force }: UnjoinOptions,
  {
    host,
    report,
    signal,
    refuseSuccessor,
    why,
  }: UnjoinContext & { readonly refuseSuccessor: () => Promise<void>; readonly why: string },
): Promise<readonly string[]> {
  const types = [
    ...WHOLE_TYPES.map(({ resource }) => resource),
    ...(await listDelegatedTypes(host, signal)).map(resourceOfType),
  ];
  if (member === undefined) {
    return [`${name}: everything${await wholeObjects(host, types, signal)}: ${why}`];
  }
  try {
    // The member joined again before it was clean, or twice: its objects are the other Cluster's.
    const other = await otherJoined({ host, member: member.client, hostId, name }, signal);
    if (other !== undefined) return [`everything: it has joined as ${other}, too, and leaves with that`];
    const remained: string[] = [];
    report(`${name}: looking for what this host made there`);
    await cleanMember(member.client, hostId, {
      signal,
      refuseSuccessor,
      types,
      report,
      remains: (what) => {
        remained.push(what);
        report(`${name}: remains: ${what}`);
      },
    });
    return remained;
  } catch (error) {
    if (!(error instanceof KubeError) || signal.aborted) throw error;
    if (force) return [`everything${await wholeObjects(host, types, signal)}: ${error.message}`];
    throw new Failure("failure", {
      object: `Cluster ${name}`,
      problem: `has left the host, but the member could not be cleaned: ${error.message}`,
      remedy: `run \`legation unjoin ${name} --member-kubeconfig FILE\` when it answers, or add --force if it never will`,
      cause: error,
    });
  }
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

/** Refuses to remove a Cluster that was joined or applied under the name since this command began. */
async function refuseSuccessorOf(
  host: ClusterClient,
  left: { readonly name: string; readonly uid: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const other = await successor(host, left, signal);
  if (other === undefined) return;
  throw new Failure("refused", {
    object: `Cluster ${left.name}`,
    problem:
      `was made again while it was leaving (its uid is ${other.metadata.uid} now): its virtual node, its credentials and ` +
      "its access in the member are left as they are",
    remedy: "when it shall leave, stop whatever makes it (GitOps, another `legation join`), then run the command again",
  });
}

function notReleased(name: string, timeoutMs: number, kept: string | undefined): Failure {
  const late = `is being deleted, but the controller did not let it go within ${timeoutMs / 1000} s`;
  return new Failure("notReady", {
    object: `Cluster ${name}`,
    problem: kept === undefined ? late : `${late}: ${kept}`,
    remedy:
      kept === undefined
        ? "check that `legation controller` runs and run the command again, or add --force to go on without it"
        : "run the command again when the member answers, or add --force when nothing runs there or never will again",
  });
}
