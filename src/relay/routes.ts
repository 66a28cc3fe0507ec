import { RELAY_ANNOTATION } from "../api/keys.ts";
import {
  type EndpointSlice,
  type ObjectKey,
  objectKey,
  objectRef,
  type Service,
  type Stored,
} from "../api/kubernetes.ts";
import { portOf, RELAY_SLICE_MANAGER, relaysInMembers } from "../api/relay.ts";
import { SERVICE_NAME_LABEL, SLICE_MANAGER_LABEL, serviceOfSlice } from "../copies/services.ts";
import type { ClusterClient } from "../kube/client.ts";
import { endpointSlices, services } from "../kube/resources.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";
import { lostPods, podsTakingConnections, type RelayPod } from "./endpoints.ts";

/** The pods to which the connections of one port lead now. */
export interface Destination {
  readonly pods: readonly RelayPod[];
  /** Connections of one client go to one pod for this long after the last; ms. Undefined: to any. */
  readonly affinityMs: number | undefined;
}

/** A port of a relayed Service. */
export interface Route {
  readonly namespace: string;
  readonly service: string;
  /** Empty if the Service's port has no name. */
  readonly portName: string;
  /** The members whose pods may use it. */
  readonly members: ReadonlySet<string>;
}

export interface RoutesOptions {
  readonly host: ClusterClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the ports to listen on may have changed. */
  readonly onPorts: () => void;
  /** Called with the uids of pods that left their Service, most of which have terminated. */
  readonly onLost: (uids: readonly string[]) => void;
}

// Kubernetes' default (sessionAffinityConfig.clientIP.timeoutSeconds).
const AFFINITY_SECONDS = 10_800;

/** The relayed Services of the host: on which port each is served, and to which pods it leads. The controller records the ports in EndpointSlices. */
export class Routes {
  readonly #options: RoutesOptions;
  readonly #slices: Reflector<EndpointSlice>;
  readonly #services: Reflector<Service>;
  /** EndpointSlices of the Services that routes lead to, by the Service's key. */
  readonly #targets = new Map<ObjectKey, Reflector<EndpointSlice>>();
  #ports: ReadonlyMap<number, Route> = new Map();

  constructor(options: RoutesOptions) {
    this.#options = options;
    const { host: client, clock, log } = options;
    const onEvent = (): void => this.#read();
    this.#slices = new Reflector({
      client,
      resource: endpointSlices,
      labelSelector: `${SLICE_MANAGER_LABEL}=${RELAY_SLICE_MANAGER}`,
      clock,
      log,
      onEvent,
    });
    this.#services = new Reflector({ client, resource: services, clock, log, onEvent });
  }

  /** Resolves when every route and its pods are known. */
  async start(signal: AbortSignal): Promise<void> {
    this.#services.start();
    await this.#services.whenSynced(signal);
    this.#slices.start();
    await this.#slices.whenSynced(signal);
    this.#read();
    await Promise.all([...this.#targets.values()].map((target) => target.whenSynced(signal)));
  }

  async stop(): Promise<void> {
    await Promise.all([this.#slices, this.#services, ...this.#targets.values()].map((each) => each.stop()));
  }

  /** The ports to listen on, each for one port of a relayed Service. */
  get ports(): ReadonlyMap<number, Route> {
    return this.#ports;
  }

  destinationOf({ namespace, service: name, portName }: Route): Destination {
    const service = this.#services.store.get(objectKey({ namespace, name }));
    const target = service && this.#targetOf(service);
    const port = service?.spec?.ports?.find((each) => (each.name ?? "") === portName);
    const targetPort = target && portOf(target, port?.targetPort ?? port?.port);
    const slices = this.#targets.get(objectKey({ namespace, name: target?.metadata.name ?? "" }))?.store.list() ?? [];
    if (service === undefined || targetPort === undefined) return { pods: [], affinityMs: undefined };
    const { sessionAffinity, sessionAffinityConfig } = service.spec ?? {};
    const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS;
    return {
      pods: podsTakingConnections(slices, targetPort.name ?? ""),
      affinityMs: sessionAffinity === "ClientIP" ? seconds * 1000 : undefined,
    };
  }

  #targetOf({ metadata }: Stored<Service>): Stored<Service> | undefined {
    const { namespace = "", annotations = {} } = metadata;
    const name = annotations[RELAY_ANNOTATION];
    return name === undefined ? undefined : this.#services.store.get(objectKey({ namespace, name }));
  }

  #read(): void {
    const ports = new Map<number, Route>();
    const targets = new Set<ObjectKey>();
    // The oldest first: an author may write a slice with a port that another Service has.
    for (const slice of this.#slices.store.list().toSorted((a, b) => createdAt(a) - createdAt(b))) {
      const { namespace = "" } = slice.metadata;
      const service = serviceOfSlice(slice);
      const inMembers = Object.keys(relaysInMembers(slice));
      for (const { name, port } of slice.ports ?? []) {
        if (port === undefined) continue;
        const known = ports.get(port);
        if (known !== undefined && (known.namespace !== namespace || known.service !== service)) continue;
        // Slices of both address families have the port.
        const members = new Set([...(known?.members ?? []), ...inMembers]);
        ports.set(port, { namespace, service, portName: name ?? "", members });
      }
      const stored = this.#services.store.get(objectKey({ namespace, name: service }));
      const target = stored?.metadata.annotations?.[RELAY_ANNOTATION];
      if (target !== undefined) targets.add(objectKey({ namespace, name: target }));
    }
    this.#ports = ports;
    this.#follow(targets);
    this.#options.onPorts();
  }

  #follow(targets: ReadonlySet<ObjectKey>): void {
    const { host: client, clock, log, onLost } = this.#options;
    for (const [key, reflector] of this.#targets) {
      if (targets.has(key)) continue;
      this.#targets.delete(key);
      void reflector.stop();
    }
    for (const key of targets) {
      if (this.#targets.has(key)) continue;
      const { namespace = "", name } = objectRef(key);
      const labelSelector = `${SERVICE_NAME_LABEL}=${name}`;
      const reflector = new Reflector<EndpointSlice>({
        client,
        resource: endpointSlices,
        namespace,
        labelSelector,
        clock,
        log,
        onEvent: (event) => {
          if (event.type === "added") return;
          onLost(lostPods(event.type === "updated" ? event.previous : event.object, reflector.store.list()));
        },
      });
      this.#targets.set(key, reflector);
      reflector.start();
    }
  }
}

function createdAt({ metadata: { creationTimestamp = "" } }: Stored<EndpointSlice>): number {
  return Date.parse(creationTimestamp) || 0;
}
