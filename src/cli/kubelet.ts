import type { ServersOptions } from "../kubelet/servers.ts";
import { Failure } from "./failure.ts";
import type { Environment } from "./flags.ts";

/** What a person says of the virtual nodes' kubelet API. */
export interface KubeletInput {
  readonly kubeletListen?: { readonly host: string; readonly port: number } | undefined;
  readonly nodeAddress?: string | undefined;
  readonly kubeletCertFile?: string | undefined;
  readonly kubeletKeyFile?: string | undefined;
}

const WILDCARDS: ReadonlySet<string> = new Set(["::", "0.0.0.0"]);

/** How the kubelet API is to be served; undefined when it is not. */
export function kubeletOf(
  { kubeletListen: listen, nodeAddress, kubeletCertFile: certFile, kubeletKeyFile: keyFile }: KubeletInput,
  { POD_IP: podIp }: Environment,
): Pick<ServersOptions, "listen" | "address" | "certificate"> | undefined {
  if (listen === undefined) return undefined;
  const address = nodeAddress ?? (WILDCARDS.has(listen.host) ? podIp : listen.host);
  if (address === undefined || address === "") {
    throw new Failure("usage", {
      object: "legation controller",
      problem: "--kubelet-listen is every address, which tells the host's API server none",
      remedy: "write --node-address with the IP or DNS name at which it reaches this process",
    });
  }
  return {
    listen,
    address,
    certificate:
      certFile === undefined || keyFile === undefined
        ? { kind: "own", hosts: [address] }
        : { kind: "files", certFile, keyFile },
  };
}
