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
