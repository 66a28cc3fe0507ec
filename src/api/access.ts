/** Names and rules of access to members through the host's API server: docs/access.md. */

/** API group and version that `legation access` serves on the host. */
export const ACCESS_GROUP = "access.legation.dev";
export const ACCESS_VERSION = "v1";
/** Namespace on the host of `legation access` and of its credentials for members. */
export const ACCESS_NAMESPACE = "legation-access";
/** Key in a Secret of that namespace: kubeconfig of the impersonating account in the member. */
export const ACCESS_KUBECONFIG_KEY = "kubeconfig";
/** Secret of that namespace with the client certificate for the hub, through which members with agents are reached. */
export const RELAY_SECRET = "hub-relay";
export const RELAY_KEYS = {
  cert: "tls.crt",
  key: "tls.key",
  /** PEM bundle of the hub's authorities. */
  authorities: "ca.crt",
  /** `HOST:PORT` of the leading controller's hub. */
  address: "address",
} as const;

/** Prefix of users and groups in a member, so that none is one of the member's own. */
export const ACCESS_PREFIX_DEFAULT = "legation:";
/** Longest prefix, which precedes each user and each group of a request. */
export const ACCESS_PREFIX_MAX = 63;
/** A prefix ends with a separator: otherwise `sys` would make the group `tem:masters` one of Kubernetes' own. */
export const ACCESS_PREFIX_PATTERN: RegExp = /^([A-Za-z0-9._-]+[:/#])*$/;

/** Accounts that may impersonate users, in Legation's namespace of a member. */
export const ACCESS_ACCOUNT_PREFIX = "legation-access-";

// The label legation.dev/host holds the whole uid.
const SHORT_ID_LENGTH = 8;

/** Returns the problem of a prefix, as a phrase after it. Undefined if it is valid. */
export function accessPrefixProblem(prefix: string): string | undefined {
  if (prefix.length > ACCESS_PREFIX_MAX) return `is longer than ${ACCESS_PREFIX_MAX} characters`;
  if (prefix.startsWith("system:")) return "begins with system:, which is Kubernetes' own; write e.g. legation:";
  return ACCESS_PREFIX_PATTERN.test(prefix)
    ? undefined
    : "is not letters, digits, '.', '_' and '-' that end with ':', '/' or '#'; write e.g. legation:";
}

/** Returns the name of the Secret with the credentials of `legation access` for a member. */
export function accessSecretName(cluster: string): string {
  return `member-${cluster}`;
}

/** Returns the part of a host's id that tells the hosts of one member apart in names. */
export function shortHostId(hostId: string): string {
  return hostId.slice(0, SHORT_ID_LENGTH);
}

/** Returns the name of the account in a member that may impersonate users, for one host. Also of its role and binding. */
export function accessAccountName(hostId: string): string {
  return ACCESS_ACCOUNT_PREFIX + shortHostId(hostId);
}

/** Returns the path on the host's API server that leads to the root of a member's. */
export function clusterProxyPath(cluster: string): string {
  return `/apis/${ACCESS_GROUP}/${ACCESS_VERSION}/clusters/${cluster}/proxy`;
}
