import { type KubeObject, objectKey, type ServiceExport, type Stored } from "../../api/kubernetes.ts";
import {
  mayBeCopied,
  OWN_SLICES_MANAGER,
  type ServiceKind,
  type ServiceObject,
  SLICE_MANAGER_LABEL,
  serviceOfSlice,
} from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { endpointSlices, type Resource, serviceExports, services } from "../../kube/resources.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { Reflector, type ReflectorState } from "../../runtime/reflector.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ExportSource, Source } from "./model.ts";

export interface SourcesOptions {
  readonly host: ClusterClient;
  /** A Service came, changed or went. */
  readonly onService: (service: Stored<ServiceObject>) => void;
  /** A slice that no selector made came, changed or went. */
  readonly onSlice: (slice: Stored<ServiceObject>) => void;
  /** A ServiceExport came, changed or went. */
  readonly onExport: (namespace: string, name: string) => void;
  /** One kind of them has been read, or cannot be. */
  readonly onState: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The resource of each kind. */
export const RESOURCES: ReadonlyMap<ServiceKind, Resource<ServiceObject>> = new Map<
  ServiceKind,
  Resource<ServiceObject>
>([
  ["Service", services],
  ["EndpointSlice", endpointSlices],
]);

const NAMESPACE_INDEX = "namespace";
const SERVICE_INDEX = "service";
// Longer than a CronJob takes to start its next pod.
const KEPT_MS = 5 * 60_000;

interface Reflectors {
  readonly services: Reflector<ServiceObject>;
  readonly slices: Reflector<ServiceObject>;
  readonly exports: Reflector<ServiceExport>;
}

/**
 * The host's Services, the slices of those without a selector, and the ServiceExports where the host has that API. They are
 * read from the first proxy on until some time after the last.
 */
export class Sources {
  readonly #options: SourcesOptions;
  #reflectors: Reflectors | undefined;
  #ending: Timer | undefined;
  #stopped = false;

  constructor(options: SourcesOptions) {
    this.#options = options;
  }

  /** There are proxies: starts to read, unless that has been begun. */
  need(): void {
    this.#ending?.cancel();
    this.#ending = undefined;
    if (this.#reflectors !== undefined || this.#stopped) return;
    const { host: client, clock, log, onService, onSlice, onExport } = this.#options;
    const onState = (state: ReflectorState): void => this.#onState(state);
    this.#reflectors = {
      services: new Reflector<ServiceObject>({
        client,
        resource: services,
        transform: withoutStatus,
        indexes: { [NAMESPACE_INDEX]: ({ metadata }) => [metadata.namespace ?? ""] },
        clock,
        log,
        onEvent: ({ object }) => onService(object),
        onState,
      }),
      slices: new Reflector<ServiceObject>({
        client,
        resource: endpointSlices,
        // One for every Service, rewritten with every pod: members make these themselves.
        labelSelector: `${SLICE_MANAGER_LABEL}!=${OWN_SLICES_MANAGER}`,
        indexes: { [SERVICE_INDEX]: (slice) => [serviceKey(slice)] },
        clock,
        log,
        onEvent: ({ object }) => onSlice(object),
        onState,
      }),
      exports: new Reflector<ServiceExport>({
        client,
        resource: serviceExports,
        clock,
        log,
        onEvent: ({ object }) => onExport(object.metadata.namespace ?? "", object.metadata.name),
        onState,
      }),
    };
    this.#begin(this.#reflectors.services);
    this.#begin(this.#reflectors.slices);
    this.#begin(this.#reflectors.exports);
  }

  /** There are no proxies any more: reading ends some time later. */
  release(): void {
    this.#ending ??= this.#options.clock.after(KEPT_MS, () => {
      this.#ending = undefined;
      void this.#end();
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ending?.cancel();
    await this.#end();
  }

  /** Whether the host's Services are still being read for the first time; not when they cannot be. */
  get pending(): boolean {
    const reflector = this.#reflectors?.services;
    return reflector !== undefined && !reflector.store.synced && reflector.state !== "backing-off";
  }

  of(kind: ServiceKind, namespace: string, name: string): Source {
    const reflector = kind === "Service" ? this.#reflectors?.services : this.#reflectors?.slices;
    if (reflector?.store.synced !== true) return { state: "unknown" };
    const object = reflector.store.get(objectKey({ namespace, name }));
    return object === undefined || !mayBeCopied(object) ? { state: "missing" } : { state: "present", object };
  }

  /** The Services of a namespace that may be copied. */
  servicesIn(namespace: string): Stored<ServiceObject>[] {
    return (this.#reflectors?.services.store.byIndex(NAMESPACE_INDEX, namespace) ?? []).filter(mayBeCopied);
  }

  /** The slices of a Service that its selector did not make. */
  slicesOf({ metadata: { namespace = "", name } }: Stored<ServiceObject>): Stored<ServiceObject>[] {
    return this.#reflectors?.slices.store.byIndex(SERVICE_INDEX, `${namespace}/${name}`) ?? [];
  }

  /** Whether the host exports the Service to other clusters. */
  exportOf(namespace: string, name: string): ExportSource {
    const exports = this.#reflectors?.exports;
    if (exports?.store.synced !== true) return { state: "unknown" };
    const object = exports.store.get(objectKey({ namespace, name }));
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return { state: "missing" };
    return { state: "present", object };
  }

  /** Tells as soon as the list is there: that a watch is accepted may be heard of with its first event only. */
  #begin<T extends KubeObject>(reflector: Reflector<T>): void {
    reflector.start();
    void reflector.whenSynced().then(() => this.#options.onState());
  }

  #onState(state: ReflectorState): void {
    if (state === "backing-off") this.#options.onState();
  }

  async #end(): Promise<void> {
    const ended = Object.values(this.#reflectors ?? {});
    this.#reflectors = undefined;
    await Promise.all(ended.map((reflector) => reflector.stop()));
  }
}

function serviceKey(slice: Stored<ServiceObject>): string {
  return `${slice.metadata.namespace}/${serviceOfSlice(slice)}`;
}

function withoutStatus(service: Stored<ServiceObject>): Stored<ServiceObject> {
  const { apiVersion = "v1", kind = "Service", metadata, spec = {} } = service;
  return { apiVersion, kind, metadata, spec };
}
