import { clusterOfNode } from "../api/keys.ts";
import type { EndpointSlice, Stored } from "../api/kubernetes.ts";
import { isOfSelector } from "../copies/services.ts";

/** A pod that takes connections of a relayed Service. */
export interface RelayPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly address: string;
  readonly port: number;
  /** Undefined: the pod runs on the host. */
  readonly cluster: string | undefined;
}

/**
 * Returns the endpoints that kube-proxy would choose among: the ready ones, else those that still serve while they end. Only
 * the host's own controller names pods: other slices may have any address, which this process must not dial.
 */
export function takingConnections(slices: readonly Stored<EndpointSlice>[], portName: string): RelayPod[] {
  const [ready, ending]: [RelayPod[], RelayPod[]] = [[], []];
  const seen = new Set<string>();
  for (const slice of slices.filter(isOfSelector)) {
    const port = slice.ports?.find(({ name }) => (name ?? "") === portName)?.port;
    for (const { addresses, conditions = {}, nodeName, targetRef } of slice.endpoints ?? []) {
      const { uid = "", name = "", namespace = "" } = targetRef?.kind === "Pod" ? targetRef : {};
      const [address] = addresses ?? [];
      // A pod with two addresses has an endpoint for each.
      if (port === undefined || address === undefined || name === "" || seen.has(uid)) continue;
      const pod = { uid, namespace, name, address, port, cluster: clusterOfNode(nodeName) };
      if (conditions.ready !== false) ready.push(pod);
      else if (conditions.serving === true && conditions.terminating === true) ending.push(pod);
      else continue;
      seen.add(uid);
    }
  }
  return ready.length > 0 ? ready : ending;
}
