import { z } from "zod";
import { accessAccountName } from "../../api/access.ts";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { role, roleBinding } from "../member/rbac.ts";
import type { Manifest } from "../shared/manifests.ts";

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

const versionAnswer = z.looseObject({ major: z.string(), minor: z.string() });
// KEP-5284 is on by default from here.
const CONSTRAINED_SINCE_MINOR = 36;

/** Returns how an API server of this version checks impersonation by default: of `/version`, or `v1.36.3`. */
export function impersonationOf(version: string | undefined): ImpersonationRules {
  const [, major = "0", minor = "0"] = /^v?(\d+)\.(\d+)/.exec(version ?? "") ?? [];
  return Number(major) > 1 || Number(minor) >= CONSTRAINED_SINCE_MINOR ? "constrained" : "any";
}

export async function readImpersonation(member: ClusterClient, signal: AbortSignal): Promise<ImpersonationRules> {
  const { major, minor } = versionAnswer.parse(await member.raw({ method: "GET", path: "/version", signal }));
  return impersonationOf(`${major}.${minor}`);
}
