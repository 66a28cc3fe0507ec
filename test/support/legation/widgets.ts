import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { SYSTEM_NAMESPACE } from "../../../src/api/keys.ts";
import { hostAccountName } from "../../../src/cli/member/access.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { namespaces, type Resource } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";

const GROUP = "shop.example.com";

/** A custom resource with a status subresource, which an operator of a member would work on. */
export const widgets: Resource<AnyObject> = {
  group: GROUP,
  version: "v1",
  plural: "widgets",
  kind: "Widget",
  namespaced: true,
};

const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: "Namespaced",
    names: { kind: "Widget", listKind: "WidgetList", plural: "widgets", singular: "widget" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

const type = {
  apiVersion: "legation.dev/v1alpha1",
  kind: "DelegatedType",
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    version: "v1",
    kind: "Widget",
    plural: "widgets",
    retain: ["/spec/replicas"],
    sum: ["readyReplicas"],
  },
};

const controllerRole = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name: "legation-controller-widgets", labels: { "legation.dev/aggregate-to-controller": "true" } },
  rules: [
    { apiGroups: [GROUP], resources: ["widgets"], verbs: ["list", "watch", "patch"] },
    { apiGroups: [GROUP], resources: ["widgets/status"], verbs: ["patch"] },
  ],
};

const GATHERED = "legation-controller-types";

async function apply(cluster: Cluster, object: object): Promise<void> {
  await kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(object) });
}

/** Installs the definition in host and members, and delegates its type. */
export async function installWidgets(
  host: { readonly cluster: Cluster; readonly client: ClusterClient },
  members: readonly Cluster[],
): Promise<void> {
  const { uid } = (await host.client.get(namespaces, { name: "kube-system" })).metadata;
  const account = hostAccountName(uid);
  for (const cluster of [host.cluster, ...members]) await apply(cluster, definition);
  for (const member of members) {
    const rules = [
      { apiGroups: [GROUP], resources: ["widgets"], verbs: ["list", "watch", "create", "patch", "delete"] },
    ];
    const metadata = { name: "legation-widgets" };
    const rbac = "rbac.authorization.k8s.io";
    await apply(member, { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata, rules });
    await apply(member, {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name: metadata.name },
      subjects: [{ kind: "ServiceAccount", name: account, namespace: SYSTEM_NAMESPACE }],
    });
  }
  await apply(host.cluster, controllerRole);
  // A controller of the host gathers roles.
  await eventually(
    async () => (await kubectl(host.cluster, ["get", "clusterrole", GATHERED, "-o", "json"])).includes('"widgets"'),
    {
      what: "the controller's rights on widgets",
    },
  );
  await apply(host.cluster, type);
}

/** Removes what `installWidgets` has made, and all widgets. */
export async function removeWidgets(host: Cluster, members: readonly Cluster[]): Promise<void> {
  const name = `widgets.${GROUP}`;
  await kubectl(host, [
    "delete",
    "--ignore-not-found",
    `delegatedtype/${name}`,
    `clusterrole/${controllerRole.metadata.name}`,
  ]);
  for (const cluster of [host, ...members]) {
    await kubectl(cluster, [
      "delete",
      "--ignore-not-found",
      `customresourcedefinition/${name}`,
      "clusterrole/legation-widgets",
      "clusterrolebinding/legation-widgets",
    ]);
  }
}
