import type { EndpointSlice } from "../api/kubernetes.ts";
import { MEMBER_RELAY_NAMESPACE, MEMBER_RELAY_SERVICE } from "../api/relay.ts";
import { SERVICE_NAME_LABEL } from "../copies/services.ts";
import type { ClusterClient } from "../kube/client.ts";
import { endpointSlices } from "../kube/resources.ts";
import { Reflector } from "../runtime/reflector.ts";
import { podsTakingConnections } from "./endpoints.ts";
import { MemberRelay, type MemberRelayOptions } from "./member-relay.ts";

export interface MemberRelaysOptions extends MemberRelayOptions {
  readonly host: ClusterClient;
}

/** The relays that run in members, as the host's endpoint controller finds them. */
export class MemberRelays {
  readonly #options: MemberRelaysOptions;
  readonly #slices: Reflector<EndpointSlice>;
  /** By the uid of the proxy. */
  readonly #relays = new Map<string, MemberRelay>();

  constructor(options: MemberRelaysOptions) {
    this.#options = options;
    const { host: client, clock, log } = options;
    this.#slices = new Reflector({
      client,
      resource: endpointSlices,
      namespace: MEMBER_RELAY_NAMESPACE,
      labelSelector: `${SERVICE_NAME_LABEL}=${MEMBER_RELAY_SERVICE}`,
      clock,
      log,
      onEvent: () => this.#follow(),
    });
  }

  start(): void {
    this.#slices.start();
  }

  tellPorts(): void {
    for (const relay of this.#relays.values()) relay.tellPorts();
  }

  /** Takes no connection any more. Those that are open go on. */
  async stop(): Promise<void> {
    await this.#slices.stop();
    for (const relay of this.#relays.values()) relay.stop();
  }

  #follow(): void {
    const pods = podsTakingConnections(this.#slices.store.list(), "");
    for (const [uid, relay] of this.#relays) {
      if (pods.some((pod) => pod.uid === uid)) continue;
      this.#relays.delete(uid);
      relay.stop();
    }
    for (const { cluster, ...pod } of pods) {
      // A relay on the host leads nowhere else.
      if (cluster === undefined || this.#relays.has(pod.uid)) continue;
      this.#relays.set(pod.uid, new MemberRelay({ ...pod, cluster }, this.#options));
    }
  }
}
