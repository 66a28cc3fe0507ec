/**
 * Prefixes of labels by which tools know what they applied: Argo CD and Helm, Flux, Fleet, kapp, the addon manager, inventories of
 * kubectl and kpt. A node that bears them, and is in no repository, is pruned.
 */
const TOOLS_OWN = [
  "app.kubernetes.io/",
  "argocd.argoproj.io/",
  "helm.sh/",
  "kustomize.toolkit.fluxcd.io/",
  "helm.toolkit.fluxcd.io/",
  "objectset.rio.cattle.io/",
  "kapp.k14s.io/",
  "addonmanager.kubernetes.io/",
  "cli-utils.sigs.k8s.io/",
  "applyset.kubernetes.io/",
];

/**
 * Labels of a Cluster that would say something untrue of its virtual node, draw DaemonSets to it, or make it a domain over which
 * the host's own pods are spread: none can go there, so the others would wait for it to have as many.
 */
const KEPT_OFF_NODES = new Set(["kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname"]);

/** Labels that say what a virtual node is, beside the one with its Cluster's name. */
export const VIRTUAL_NODE_KIND: Readonly<Record<string, string>> = {
  // Shown by kubectl as the node's role.
  "node-role.kubernetes.io/member": "",
  // Cluster Autoscaler counts what all other nodes have towards the host's own limits (isVirtualKubeletNode in core/utils).
  type: "virtual-kubelet",
};

/** Roles that manifests for other virtual kubelets select beside `type: virtual-kubelet`; a virtual node does not show them. */
export const OTHER_ROLES: Readonly<Record<string, string>> = {
  "kubernetes.io/role": "agent",
  "node-role.kubernetes.io/agent": "",
};

/** Returns the labels that a virtual node has from its Cluster. */
export function labelsFromCluster(labels: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !isKeptOff(key)));
}

function isKeptOff(label: string): boolean {
  return KEPT_OFF_NODES.has(label) || TOOLS_OWN.some((prefix) => label.startsWith(prefix));
}
