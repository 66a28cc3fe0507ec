import type { NodeAddressType } from "../api/virtual-node.ts";
import type { ServersOptions } from "../kubelet/servers.ts";
import type { CertificateSource } from "../kubelet/serving-certificate.ts";
import { Failure } from "./failure.ts";
import type { Environment } from "./flag.ts";

/** Flags of the virtual nodes' kubelet API. */
export interface KubeletInput {
  readonly kubeletListen?: { readonly host: string; readonly port: number } | undefined;
  readonly nodeAddress?: string | undefined;
  readonly nodeAddressType?: NodeAddressType | undefined;
  readonly kubeletCertFile?: string | undefined;
  readonly kubeletKeyFile?: string | undefined;
  readonly kubeletCertificateSigner?: string | undefined;
}

const WILDCARDS: ReadonlySet<string> = new Set(["::", "0.0.0.0"]);

/** How the kubelet API is to be served; undefined when it is not. */
export function kubeletOf(
  input: KubeletInput,
  { POD_IP: podIp }: Environment,
): Pick<ServersOptions, "listen" | "address" | "addressType" | "certificate"> | undefined {
  const { kubeletListen: listen, nodeAddress, nodeAddressType: addressType } = input;
  if (listen === undefined) return undefined;
  const address = nodeAddress ?? (WILDCARDS.has(listen.host) ? podIp : listen.host);
  if (address === undefined || address === "") {
    throw new Failure("usage", {
      object: "legation controller",
      problem: "--kubelet-listen is every address, which tells the host's API server none",
      remedy: "write --node-address with the IP or DNS name at which it reaches this process",
    });
  }
  const type = addressType === undefined ? {} : { addressType };
  return { listen, address, ...type, certificate: sourceOf(input, [address]) };
}

function sourceOf(
  { kubeletCertFile: certFile, kubeletKeyFile: keyFile, kubeletCertificateSigner: signer }: KubeletInput,
  hosts: readonly string[],
): CertificateSource {
  if (certFile !== undefined && keyFile !== undefined) return { kind: "files", certFile, keyFile };
  return signer === undefined ? { kind: "own", hosts } : { kind: "signer", signer, hosts };
}
