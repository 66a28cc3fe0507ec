import { PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { pods } from "../kube/resources.ts";
import type { ControllerOptions } from "../runtime/controller.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { ReadStore } from "../runtime/store.ts";
import { PLACEMENT_INDEXES } from "../scheduling/known-pods.ts";
import type { Emitter } from "./events.ts";

export const NODE_INDEX = "node";

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
      ...PLACEMENT_INDEXES,
    },
    onEvent: (event) => events.emit("proxy", event),
  });
}

/** Returns undefined before the proxies have been read. */
export function boundTo(
  proxies: Pick<ReadStore<Pod>, "synced" | "countByIndex">,
  nodeName: string,
): number | undefined {
  return proxies.synced ? proxies.countByIndex(NODE_INDEX, nodeName) : undefined;
}
