import { PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { pods } from "../kube/resources.ts";
import { isTerminal } from "../pods/pod-state.ts";
import type { ControllerOptions } from "../runtime/controller.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { ReadStore } from "../runtime/store.ts";
import { PLACEMENT_INDEXES } from "../scheduling/known-pods.ts";
import type { Emitter } from "./events.ts";

export const NODE_INDEX = "node";
/** Index of the pods that have not ended by `placeOf`. */
export const PLACE_INDEX = "place";

export interface ProxiesOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly events: Emitter;
}

/** The reflector has still to be started. */
export function reflectProxies({ host, events, clock, log }: ProxiesOptions): Reflector<Pod> {
  return new Reflector({
    client: host,
    resource: pods,
    labelSelector: `${PROXY_LABEL}=${PROXY_LABEL_VALUE}`,
    clock,
    log,
    indexes: {
      [NODE_INDEX]: ({ spec }) => (spec?.nodeName === undefined ? [] : [spec.nodeName]),
      [PLACE_INDEX]: (pod) =>
        pod.spec?.nodeName === undefined || isTerminal(pod) ? [] : [placeOf(pod.metadata.namespace, pod.spec.nodeName)],
      ...PLACEMENT_INDEXES,
    },
    onEvent: (event) => events.emit("proxy", event),
  });
}

export function placeOf(namespace: string | undefined, nodeName: string | undefined): string {
  return `${namespace ?? ""}/${nodeName ?? ""}`;
}

/** Returns undefined before the proxies have been read. */
export function boundTo(
  proxies: Pick<ReadStore<Pod>, "synced" | "countByIndex">,
  nodeName: string,
): number | undefined {
  return proxies.synced ? proxies.countByIndex(NODE_INDEX, nodeName) : undefined;
}
