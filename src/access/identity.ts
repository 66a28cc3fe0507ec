import type { Impersonation } from "../kube/client.ts";
import type { User } from "../serving/access-reviews.ts";

/** The user of a request in the member; or the reason why there is none. */
export type MemberIdentity = Impersonation | { readonly problem: string };

// Names that Kubernetes keeps for its own users and groups. They mean something else in each cluster.
const OWN = "system:";
const ANONYMOUS = "system:anonymous";
const UNAUTHENTICATED = "system:unauthenticated";
// Facts about the host's tokens, pods and nodes, such as authentication.kubernetes.io/node-name.
const OWN_EXTRA = /^([^/]+\.)?(kubernetes|k8s)\.io\//;

/** Returns whom the member's API server takes a request of the host's user for. */
export function memberIdentity({ name, groups, uid, extra = {} }: User, prefix: string): MemberIdentity {
  // A member counts every impersonated user as authenticated.
  if (name === ANONYMOUS || groups.includes(UNAUTHENTICATED))
    return { problem: "it has no name: anonymous users have no access" };
  const user = `${prefix}${name}`;
  if (user.startsWith(OWN)) {
    return {
      problem: `${user} would be the member's own: users whose names begin with ${OWN} need a prefix (--access-prefix)`,
    };
  }
  const others = Object.entries(extra).filter(([key]) => !OWN_EXTRA.test(key));
  return {
    user,
    ...(uid === undefined ? {} : { uid }),
    groups: groups
      .filter((group) => !group.startsWith(OWN))
      .map((group) => `${prefix}${group}`)
      .filter((group) => !group.startsWith(OWN)),
    extra: Object.fromEntries(others),
  };
}
