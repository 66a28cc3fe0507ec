import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ApiAccess, apiRequest } from "../api-request.ts";
import type { Addresses, NodeFiles } from "./config.ts";

const NAMES_NAMESPACE = "kube-system";
const NAMES_SERVICE = "kube-dns";
const DNS_PORTS = ["UDP", "TCP"].map((protocol) => ({ name: `dns-${protocol.toLowerCase()}`, port: 53, protocol }));

function kubeProxyConfig({ clusterDirectory, nodeName, addresses, serviceNetwork }: NodeFiles): string {
  return JSON.stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "iptables",
    clientConnection: { kubeconfig: join(clusterDirectory, "kube-proxy.kubeconfig") },
    hostnameOverride: nodeName,
    detectLocalMode: "ClusterCIDR",
    clusterCIDR: serviceNetwork === "dual-stack" ? `${addresses.pods},${addresses.ipv6.pods}` : addresses.pods,
    // Leaves the machine's limits as they are.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    // A pod that calls 127.0.0.1 stays in its own namespace.
    iptables: { localhostNodePorts: false, minSyncPeriod: "100ms" },
  });
}

function corefile({ clusterDirectory }: NodeFiles): string {
  return `.:53 {
  errors
  rewrite name regex ([^.]+)\\.([^.]+)\\.svc\\.clusterset\\.local clusterset-{1}.{2}.svc.cluster.local answer auto
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig ${join(clusterDirectory, "coredns.kubeconfig")}
    ttl 1
  }
}
`;
}

/** Writes the configuration of kube-proxy and CoreDNS. */
export function writeServiceNetwork(files: NodeFiles): void {
  writeFileSync(join(files.directory, "kube-proxy.json"), kubeProxyConfig(files));
  writeFileSync(join(files.directory, "Corefile"), corefile(files));
}

/** Shell that starts both on the node. */
export function servicePrograms({ directory, binaries: { service }, serviceNetwork }: NodeFiles): string {
  if (serviceNetwork === undefined || service === undefined) return "";
  return `# Pods of one bridge reach each other by a Service's address only if the bridge shows its packets to iptables.
in_node sh -c 'for each in /proc/sys/net/bridge/bridge-nf-call-ip*tables; do echo 1 >"$each"; done'
in_node "${service.kubeProxy}" --config="${join(directory, "kube-proxy.json")}" &
in_node "${service.coredns}" -conf "${join(directory, "Corefile")}" &
`;
}

/**
 * Makes the cluster's name server known to kube-proxy as a Service, and the API server not: no endpoint stands behind its
 * address, which is on the machine itself.
 */
export async function createServiceNetwork(access: ApiAccess, { dns, node }: Addresses): Promise<void> {
  // The API server creates its namespaces and its Service some time after it answers.
  const written = async (method: "POST" | "PATCH", path: string, body: object): Promise<void> => {
    for (;;) {
      const answer = await apiRequest(access, method, path, { body });
      if (answer.status < 300) return;
      if (answer.status !== 404) throw new Error(`${path}: ${answer.text}`);
      await sleep(100);
    }
  };
  await written("POST", `/api/v1/namespaces/${NAMES_NAMESPACE}/services`, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: NAMES_SERVICE },
    spec: { clusterIP: dns, ports: DNS_PORTS },
  });
  await written("POST", `/apis/discovery.k8s.io/v1/namespaces/${NAMES_NAMESPACE}/endpointslices`, {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: NAMES_SERVICE, labels: { "kubernetes.io/service-name": NAMES_SERVICE } },
    addressType: "IPv4",
    endpoints: [{ addresses: [node] }],
    ports: DNS_PORTS,
  });
  await written("PATCH", "/api/v1/namespaces/default/services/kubernetes", {
    metadata: { labels: { "service.kubernetes.io/service-proxy-name": "none" } },
  });
}
