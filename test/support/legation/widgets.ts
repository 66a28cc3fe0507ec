import { SYSTEM_NAMESPACE } from "../../../src/api/keys.ts";
import { hostAccountName } from "../../../src/cli/member/access.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { allowTypes, forbidTypes } from "./allow-types.ts";
import { widgetDefinition as definition, WIDGETS as NAME } from "./widget.ts";

export { widgets } from "./widget.ts";

async function apply(cluster: Cluster, object: object): Promise<void> {
  await kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(object) });
}

/** Installs widgets in host and members. `more` are further fields of their type. */
export async function installWidgets(
  { cluster: host }: { readonly cluster: Cluster },
  members: Readonly<Record<string, Cluster>>,
  more: object = {},
): Promise<void> {
  const spec = { retain: ["/spec/replicas"], replicas: "/spec/parts", sum: ["readyReplicas"], ...more };
  await installType({ name: NAME, definition, spec }, host, members);
}

/** A custom resource that members get. */
export interface TestType {
  /** Name of the definition and of the DelegatedType. */
  readonly name: string;
  readonly definition: object;
  /** Fields of the DelegatedType beside those that `legation install` writes. */
  readonly spec: object;
}

/** Installs a definition in host and members, and allows its type in all of them by the commands. Members are named as joined. */
export async function installType(
  { name: type, definition: resource, spec }: TestType,
  host: Cluster,
  members: Readonly<Record<string, Cluster>>,
): Promise<void> {
  for (const cluster of [host, ...Object.values(members)]) await apply(cluster, resource);
  for (const cluster of [host, ...Object.values(members)]) {
    await kubectl(cluster, ["wait", "--for=condition=Established", `customresourcedefinition/${type}`]);
  }
  await allowTypes([type], { host, members });
  await kubectl(host, ["patch", `delegatedtype/${type}`, "--type=merge", `--patch=${JSON.stringify({ spec })}`]);
}

/** Installs the definition in a member and allows it there by hand, where `join` would change the way to the member. */
export async function allowWidgetsIn(member: Cluster, hostId: string): Promise<void> {
  await apply(member, definition);
  const rbac = "rbac.authorization.k8s.io";
  const metadata = { name: "hosts-widgets" };
  const verbs = ["list", "watch", "create", "patch", "delete"];
  const rules = [{ apiGroups: ["shop.example.com"], resources: ["widgets"], verbs }];
  await apply(member, { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata, rules });
  await apply(member, {
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRoleBinding",
    metadata,
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name: metadata.name },
    subjects: [{ kind: "ServiceAccount", name: hostAccountName(hostId), namespace: SYSTEM_NAMESPACE }],
  });
}

/** Removes what `installWidgets` and `allowWidgetsIn` have made, and all widgets. */
export async function removeWidgets(host: Cluster, members: readonly Cluster[]): Promise<void> {
  await removeType(NAME, host, members);
  for (const member of members) {
    await kubectl(member, [
      "delete",
      "--ignore-not-found",
      "clusterrole/hosts-widgets",
      "clusterrolebinding/hosts-widgets",
    ]);
  }
}

/** Removes what `installType` has made, and all objects of the type. */
export async function removeType(type: string, host: Cluster, members: readonly Cluster[]): Promise<void> {
  await forbidTypes([type], { host, members: Object.fromEntries(members.entries()) });
  for (const cluster of [host, ...members]) {
    await kubectl(cluster, ["delete", "--ignore-not-found", `customresourcedefinition/${type}`]);
  }
}
