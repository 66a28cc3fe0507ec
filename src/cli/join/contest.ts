import { CLUSTER_DEFAULTS } from "../../api/cluster.ts";
import { type Secret, type Stored, secretText } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { Failure } from "../failure.ts";
import { findAccount } from "../member/access.ts";
import type { Connection } from "../session.ts";

/** The refusal of a join that another one under the same name has forestalled since this one began. */
export function forestalled(name: string, cause: unknown): Failure {
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: "another `legation join` has taken this name meanwhile",
    remedy: "look at `legation status`; to join this member too, choose another name",
    cause,
  });
}

/** The refusal of a join of a member that another one, under another name, has joined since this one began. */
export function joinedMeanwhile(name: string, other: string): Failure {
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `another \`legation join\` has joined this member meanwhile, as ${other}`,
    remedy: `look at \`legation status\` and use ${other}; when that one was refused, too, join again`,
  });
}

/**
 * Whether the credentials that another join has stored are for this very member: then its access there is that one's, too.
 * Also where nobody can tell, since access that is left does less harm than access that is taken from a member.
 */
export async function isSameMember(
  credentials: Stored<Secret> | undefined,
  {
    member,
    hostId,
    name,
    connectText,
    signal,
  }: {
    readonly member: ClusterClient;
    readonly hostId: string;
    readonly name: string;
    readonly connectText: (kubeconfig: string, as: string) => Promise<Connection>;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const kubeconfig = secretText(credentials, CLUSTER_DEFAULTS.credentialsKey) ?? "";
  try {
    const { client } = await connectText(kubeconfig, name);
    const theirs = await findAccount(client, hostId, signal);
    const ours = await findAccount(member, hostId, signal);
    return theirs?.metadata.uid === ours?.metadata.uid;
  } catch {
    return true;
  }
}
