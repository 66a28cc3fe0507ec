import { PROXY_LABEL, PROXY_LABEL_VALUE } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/phase.ts";

/** Proxies of the host: all, or those bound to one node. */
export function listProxies(
  host: ClusterClient,
  { node, signal }: { readonly node?: string; readonly signal: AbortSignal },
): Promise<Stored<Pod>[]> {
  const labelSelector = `${PROXY_LABEL}=${PROXY_LABEL_VALUE}`;
  return listPods(host, {
    labelSelector,
    signal,
    ...(node === undefined ? {} : { fieldSelector: `spec.nodeName=${node}` }),
  });
}

/** All pods that are selected, a page at a time. */
export function listPods(
  host: ClusterClient,
  options: {
    readonly labelSelector: string;
    readonly namespace?: string;
    readonly fieldSelector?: string;
    readonly signal: AbortSignal;
  },
): Promise<Stored<Pod>[]> {
  return listAll(host, pods, options);
}

/** Returns the pods that have not finished. */
export function unfinished(proxies: readonly Stored<Pod>[]): Stored<Pod>[] {
  return proxies.filter((proxy) => !isTerminal(proxy));
}

/** `namespace/name` of a pod. */
export function podName({ metadata }: Stored<Pod>): string {
  return `${metadata.namespace}/${metadata.name}`;
}
