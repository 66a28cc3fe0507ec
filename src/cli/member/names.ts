// Enough of a uid to tell the hosts of one member apart; the label legation.dev/host holds all of it.
const SHORT_ID_LENGTH = 8;

/**
 * Name of a host's service account, ClusterRole and ClusterRoleBinding in a member: each host has its own, so that one
 * member can serve several and losing one host's access leaves the others alone.
 */
export function hostAccountName(hostId: string): string {
  return `legation-host-${hostId.slice(0, SHORT_ID_LENGTH)}`;
}

/** Name of the Secret on the host that holds a member's kubeconfig. */
export function credentialsSecretName(cluster: string): string {
  return `member-${cluster}`;
}
