import { AGGREGATE_TO_HOST_LABEL, SYSTEM_NAMESPACE } from "../../../src/api/keys.ts";
import { hostAccountName } from "../../../src/cli/member/access.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { legation } from "./cli.ts";
import { widgetDefinition as definition, WIDGETS as NAME } from "./widget.ts";

export { widgets } from "./widget.ts";

const GATHERED = "legation-controller-types";

async function apply(cluster: Cluster, object: object): Promise<void> {
  await kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(object) });
}

/** Installs the definition in host and members, and allows its type in all of them by the commands. Members are named as joined; `more` are further fields of its spec. */
export async function installWidgets(
  { cluster: host }: { readonly cluster: Cluster },
  members: Readonly<Record<string, Cluster>>,
  more: object = {},
): Promise<void> {
  for (const cluster of [host, ...Object.values(members)]) await apply(cluster, definition);
  for (const cluster of [host, ...Object.values(members)]) {
    await kubectl(cluster, ["wait", "--for=condition=Established", `customresourcedefinition/${NAME}`]);
  }
  for (const [name, { kubeconfig }] of Object.entries(members)) {
    const flags = [`--kubeconfig=${host.kubeconfig}`, `--member-kubeconfig=${kubeconfig}`, `--types=${NAME}`];
    await legation(["join", name, ...flags]);
  }
  await legation(["install", `--kubeconfig=${host.kubeconfig}`, `--types=${NAME}`]);
  const spec = { retain: ["/spec/replicas"], replicas: "/spec/parts", sum: ["readyReplicas"], ...more };
  const patch = ["patch", `delegatedtype/${NAME}`, "--type=merge", `--patch=${JSON.stringify({ spec })}`];
  await kubectl(host, patch);
  // A controller of the host gathers roles.
  await eventually(
    async () => (await kubectl(host, ["get", "clusterrole", GATHERED, "-o", "json"])).includes('"widgets"'),
    {
      what: "the controller's rights on widgets",
    },
  );
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

/** Removes what `installWidgets` has made, and all widgets. */
export async function removeWidgets(host: Cluster, members: readonly Cluster[]): Promise<void> {
  await kubectl(host, ["delete", "--ignore-not-found", `delegatedtype/${NAME}`]);
  await kubectl(host, [
    "delete",
    "--ignore-not-found",
    `clusterrole/legation-controller-${NAME}`,
    `clusterrole/legation-authors-${NAME}`,
  ]);
  for (const cluster of [host, ...members]) {
    await kubectl(cluster, ["delete", "--ignore-not-found", `customresourcedefinition/${NAME}`]);
  }
  for (const member of members) {
    await kubectl(member, [
      "delete",
      "--ignore-not-found",
      "clusterrole/hosts-widgets",
      "clusterrolebinding/hosts-widgets",
    ]);
    const roles = await kubectl(member, ["get", "clusterroles", "-l", AGGREGATE_TO_HOST_LABEL, "-o", "name"]);
    for (const role of roles.split("\n").filter((name) => name.endsWith(NAME))) await kubectl(member, ["delete", role]);
  }
}
