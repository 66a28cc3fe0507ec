import { PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { pods } from "../kube/resources.ts";
import { USES_INDEX, usesOf } from "../pods/dependencies.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { IndexFunction, ReadStore } from "../runtime/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Emitter } from "./events.ts";

/** Index of proxies by node. */
export const NODE_INDEX = "node";
/** Index of proxies by namespace. */
export const NAMESPACE_INDEX = "namespace";
/** Index of proxies by uid. */
export const UID_INDEX = "uid";

/** The indexes that the store of proxies needs. */
export const PLACEMENT_INDEXES: Readonly<Record<string, IndexFunction<Pod>>> = {
  [NAMESPACE_INDEX]: ({ metadata }) => [metadata.namespace ?? ""],
  [UID_INDEX]: ({ metadata }) => [metadata.uid],
};

export interface ProxiesOptions {
  readonly host: ClusterClient;
  readonly events: Emitter;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Returns the reflector of the host's proxies, which all controllers share. It has still to be started. */
export function reflectProxies({ host, events, clock, log }: ProxiesOptions): Reflector<Pod> {
  return new Reflector({
    client: host,
    resource: pods,
    labelSelector: `${PROXY_LABEL}=${PROXY_LABEL_VALUE}`,
    clock,
    log,
    indexes: {
      [NODE_INDEX]: ({ spec }) => (spec?.nodeName === undefined ? [] : [spec.nodeName]),
      [USES_INDEX]: usesOf,
      ...PLACEMENT_INDEXES,
    },
    onEvent: (event) => events.emit("proxy", event),
  });
}

/** Returns the number of proxies bound to a node; undefined before they have been read. */
export function boundTo(proxies: ReadStore<Pod>, nodeName: string): number | undefined {
  return proxies.synced ? proxies.countByIndex(NODE_INDEX, nodeName) : undefined;
}
