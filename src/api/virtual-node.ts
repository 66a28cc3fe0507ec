import { isToolsLabel } from "./delivery-tools.ts";

/** The type of an IP address in a node's status. */
export const NODE_ADDRESS_TYPES = ["InternalIP", "ExternalIP"] as const;
export type NodeAddressType = (typeof NODE_ADDRESS_TYPES)[number];

/** The address of a virtual node's kubelet API, for the host's API server. */
export interface KubeletEndpoint {
  /** IP address or DNS name. */
  readonly address: string;
  /** Type of an IP address in the node's status; default InternalIP. */
  readonly addressType?: NodeAddressType;
  readonly port: number;
}

/** Label prefixes that describe the Cluster as an object of an application. The node is none of it. */
const OF_THE_OBJECT = ["app.kubernetes.io/", "helm.sh/"];

/** A node's own name, as most programs select it. */
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

/** Labels that would draw DaemonSets to a virtual node, or make it a domain of the host's topology spread. */
const KEPT_OFF_NODES = new Set(["kubernetes.io/os", "kubernetes.io/arch", HOSTNAME_LABEL]);

/** Labels of every virtual node, beside its Cluster's name. */
export const VIRTUAL_NODE_KIND: Readonly<Record<string, string>> = {
  // kubectl shows this as the node's role.
  "node-role.kubernetes.io/member": "",
  // Cluster Autoscaler does not count such nodes towards the host's limits (isVirtualKubeletNode in core/utils).
  type: "virtual-kubelet",
};

/** Roles that manifests for other virtual kubelets select. A virtual node does not show them. */
export const OTHER_ROLES: Readonly<Record<string, string>> = {
  "kubernetes.io/role": "agent",
  "node-role.kubernetes.io/agent": "",
};

export function labelsFromCluster(labels: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key, value]) => !isKeptOff(key, value)));
}

/** A tool would prune a node that has its label. */
function isKeptOff(label: string, value: string): boolean {
  if (KEPT_OFF_NODES.has(label) || isToolsLabel(label, value, "copy")) return true;
  return OF_THE_OBJECT.some((prefix) => label.startsWith(prefix));
}
