import { PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { pods } from "../kube/resources.ts";
import { isTerminal } from "../pods/pod-state.ts";
import type { ControllerOptions } from "../runtime/controller.ts";
import { Reflector, type ReflectorEvent } from "../runtime/reflector.ts";
import type { ReadStore } from "../runtime/store.ts";
import { PLACEMENT_INDEXES } from "../scheduling/known-pods.ts";

export const NODE_INDEX = "node";
/** Index of the pods of a node that have not ended, and of those that run, by `stateOn`. */
const STATE_INDEX = "state";
/** Index of the pods that have not ended by `placeOf`. */
export const PLACE_INDEX = "place";

export interface ProxiesOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly onEvent: (event: ReflectorEvent<Pod>) => void;
}

/** The reflector has still to be started. */
export function reflectProxies({ host, onEvent, clock, log }: ProxiesOptions): Reflector<Pod> {
  return new Reflector({
    client: host,
    resource: pods,
    labelSelector: `${PROXY_LABEL}=${PROXY_LABEL_VALUE}`,
    clock,
    log,
    indexes: {
      [NODE_INDEX]: ({ spec }) => (spec?.nodeName === undefined ? [] : [spec.nodeName]),
      [STATE_INDEX]: (pod) =>
        pod.spec?.nodeName === undefined || isTerminal(pod)
          ? []
          : [
              stateOn(pod.spec.nodeName),
              ...(pod.status?.phase === "Running" ? [stateOn(pod.spec.nodeName, "Running")] : []),
            ],
      [PLACE_INDEX]: (pod) =>
        pod.spec?.nodeName === undefined || isTerminal(pod) ? [] : [placeOf(pod.metadata.namespace, pod.spec.nodeName)],
      ...PLACEMENT_INDEXES,
    },
    onEvent,
  });
}

export function placeOf(namespace: string | undefined, nodeName: string | undefined): string {
  return `${namespace ?? ""}/${nodeName ?? ""}`;
}

function stateOn(nodeName: string, phase = ""): string {
  return `${nodeName}/${phase}`;
}

/** Counts the pods bound to a node that have not ended, and those that run. Undefined before the proxies have been read. */
export function unfinishedOn(
  proxies: Pick<ReadStore<Pod>, "synced" | "countByIndex">,
  nodeName: string,
): { readonly unfinished: number | undefined; readonly running: number | undefined } {
  const count = (phase?: string): number | undefined =>
    proxies.synced ? proxies.countByIndex(STATE_INDEX, stateOn(nodeName, phase)) : undefined;
  return { unfinished: count(), running: count("Running") };
}

/** Returns undefined before the proxies have been read. */
export function boundTo(
  proxies: Pick<ReadStore<Pod>, "synced" | "countByIndex">,
  nodeName: string,
): number | undefined {
  return proxies.synced ? proxies.countByIndex(NODE_INDEX, nodeName) : undefined;
}
