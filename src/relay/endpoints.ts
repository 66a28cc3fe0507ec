import type { EndpointSlice, Stored } from "../api/kubernetes.ts";
import { serviceEndpoints, takingConnections } from "../copies/service-endpoints.ts";
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

/** Returns the uids of the pods of a slice's earlier state that none of the Service's slices has any more. */
export function lostPods(previous: Stored<EndpointSlice>, slices: readonly Stored<EndpointSlice>[]): string[] {
  if (!isOfSelector(previous)) return [];
  const uidsOf = ({ endpoints }: EndpointSlice): string[] =>
    (endpoints ?? []).flatMap(({ targetRef }) => targetRef?.uid ?? []);
  const left = new Set(slices.flatMap(uidsOf));
  return uidsOf(previous).filter((uid) => !left.has(uid));
}

/** Returns the pods that take connections of a port. Only the host's own controller names pods: other slices may have any address, which this process must not dial. */
export function podsTakingConnections(slices: readonly Stored<EndpointSlice>[], portName: string): RelayPod[] {
  const portOf = ({ ports }: EndpointSlice): number | undefined =>
    ports?.find(({ name }) => (name ?? "") === portName)?.port;
  const found = serviceEndpoints(slices.filter((slice) => isOfSelector(slice) && portOf(slice) !== undefined));
  const pods = found.filter(({ endpoint: { targetRef } }) => targetRef?.kind === "Pod" && targetRef.name !== undefined);
  return takingConnections(pods).flatMap(({ endpoint, slice, address, cluster }) => {
    const { uid = "", name = "", namespace = "" } = endpoint.targetRef ?? {};
    const port = portOf(slice);
    return port === undefined ? [] : [{ uid, namespace, name, address, port, cluster }];
  });
}
