/** What a node calls an IP address in its status. */
export const NODE_ADDRESS_TYPES = ["InternalIP", "ExternalIP"] as const;
export type NodeAddressType = (typeof NODE_ADDRESS_TYPES)[number];

/** Where the host's API server finds a virtual node's kubelet API. */
export interface KubeletEndpoint {
  /** IP address or DNS name. */
  readonly address: string;
  /** What the node calls an IP address; default InternalIP. */
  readonly addressType?: NodeAddressType;
  readonly port: number;
}
