import { ACCESS_NAMESPACE, ACCESS_PREFIX_DEFAULT, accessAccountName } from "../../api/access.ts";
import type { AccessSpec, Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { memberKubeconfig } from "../../clusters/kubeconfig.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring } from "../../kube/errors.ts";
import { namespaces } from "../../kube/resources.ts";
import { requestToken } from "../../kube/service-account-token.ts";
import { role, roleBinding } from "../member/access.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { withNewRights } from "../shared/wait.ts";

/** A join's wish for users of the host. `remove` takes earlier access away. Undefined in a join: as before. */
export type AccessWish = { readonly prefix?: string | undefined } | "remove";

/** Returns how users of the host reach the member after the join. Undefined: they do not. */
export function accessAfter(wish: AccessWish | undefined, joined: Cluster | undefined): AccessSpec | undefined {
  const before = joined?.spec.access;
  if (wish === "remove") return undefined;
  return wish === undefined ? before : { prefix: wish.prefix ?? before?.prefix ?? ACCESS_PREFIX_DEFAULT };
}

/** Rejects with `Failure` on a host where nothing serves the access. */
export async function requireAccessServer(host: ClusterClient, signal: AbortSignal): Promise<void> {
  if ((await host.find(namespaces, { name: ACCESS_NAMESPACE }, { signal })) !== undefined) return;
  throw new Failure("refused", {
    object: "--access",
    problem: `the host has no namespace ${ACCESS_NAMESPACE}, so \`legation access\`, which serves it, is not installed`,
    remedy: "run `legation install --access` first, or add --remove-access when users shall not reach this member",
  });
}

/** A token of the impersonating account. */
export interface AccessToken {
  readonly token: string;
  /** RFC 3339. */
  readonly expires: string;
}

/** Returns a token by which users of the prefix can be impersonated in the member. Undefined if the member refuses that. */
export async function impersonatingToken(
  { hostId, cluster, prefix }: { readonly hostId: string; readonly cluster: string; readonly prefix: string },
  { member, connectText, signal }: HostContext & { readonly member: Connection },
): Promise<AccessToken | undefined> {
  const account = { namespace: SYSTEM_NAMESPACE, name: accessAccountName(hostId) };
  const given = await requestToken(member.client, account, signal);
  const name = `${prefix}legation-join`;
  const as = { user: name, uid: name, groups: [name], extra: { "legation.dev/join": [name] } };
  const { client } = await connectText(memberKubeconfig({ ...member, cluster, token: given.token, as }), cluster);
  const spec = { resourceAttributes: { verb: "get", resource: "pods" } };
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec };
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const tried = withNewRights(() => client.raw({ method: "POST", path, body, signal }), signal).then(() => given);
  return await ignoring(tried, "Forbidden", "Unauthorized");
}

export function impersonationRefused(cluster: string): Failure {
  return new Failure("refused", {
    object: `Cluster ${cluster}`,
    field: "--access",
    problem: "the member's API server refuses impersonation by the new account, though its ClusterRole permits it",
    remedy: "look for an authorization webhook of the member that denies it, or join without --access",
  });
}

const AUTHENTICATION_GROUP = "authentication.k8s.io";
const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const HTTP_VERBS = ["get", "head", "post", "put", "patch", "delete", "options"];

/** How a member's API server checks impersonation: `constrained` (KEP-5284) refuses system:masters, service accounts and nodes. */
export type ImpersonationRules = "constrained" | "any";

const IMPERSONATION_RULES: Readonly<Record<ImpersonationRules, readonly object[]>> = {
  // RBAC has no pattern for `userextras/KEY`, so all resources of the group are named.
  constrained: [
    { apiGroups: [AUTHENTICATION_GROUP], resources: ["*"], verbs: ["impersonate:user-info"] },
    { apiGroups: ["*"], resources: ["*"], verbs: VERBS.map((verb) => `impersonate-on:user-info:${verb}`) },
    { nonResourceURLs: ["*"], verbs: HTTP_VERBS.map((verb) => `impersonate-on:user-info:${verb}`) },
  ],
  any: [
    { apiGroups: [""], resources: ["users", "groups"], verbs: ["impersonate"] },
    { apiGroups: [AUTHENTICATION_GROUP], resources: ["*"], verbs: ["impersonate"] },
  ],
};

/** Returns the account in a member by which `legation access` acts for users: it may impersonate, and renew its token. */
export function accessAccountObjects(
  hostId: string,
  impersonation: ImpersonationRules,
  { labels, annotations }: Manifest["metadata"],
): readonly Manifest[] {
  const name = accessAccountName(hostId);
  const metadata = { name, labels, annotations };
  const inNamespace = { ...metadata, namespace: SYSTEM_NAMESPACE };
  const renewal = { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: [name], verbs: ["create"] };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: inNamespace },
    role("ClusterRole", metadata, IMPERSONATION_RULES[impersonation]),
    roleBinding("ClusterRole", metadata),
    role("Role", inNamespace, [renewal]),
    roleBinding("Role", inNamespace),
  ];
}

// KEP-5284 is on by default from here.
const CONSTRAINED_SINCE_MINOR = 36;

/** Returns how an API server of this version checks impersonation by default. */
export function impersonationOf(version: string | undefined): ImpersonationRules {
  const [, major = "0", minor = "0"] = /^v?(\d+)\.(\d+)/.exec(version ?? "") ?? [];
  return Number(major) > 1 || Number(minor) >= CONSTRAINED_SINCE_MINOR ? "constrained" : "any";
}
