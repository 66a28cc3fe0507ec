import { defined } from "../../../api/defined.ts";
import { GROUP, HOST_LABEL } from "../../../api/keys.ts";
import type {
  EndpointSlice,
  KubeObject,
  Service,
  ServiceExport,
  ServiceImport,
  Stored,
} from "../../../api/kubernetes.ts";
import { IMPORTED_LABEL } from "../../../api/service-fields.ts";
import { SERVICE_NAME_LABEL, SLICE_MANAGER_LABEL, serviceOfSlice } from "../../../copies/services.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import type { ByteBudget } from "../../../kube/limits.ts";
import { ServedResource } from "../../../kube/optional-resource.ts";
import {
  endpointSlices,
  type OptionalResource,
  type Resource,
  serviceExports,
  serviceImports,
  services,
} from "../../../kube/resources.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { Reflector } from "../../../runtime/reflector.ts";
import { WriteGuard } from "../../../runtime/write-guard.ts";
import type { Logger } from "../../../telemetry/logger.ts";

export interface ClusterWatchesOptions {
  readonly client: ClusterClient;
  readonly hostId: string;
  readonly budget: ByteBudget | undefined;
  /** The cluster's export of that name has changed, or the Service or a slice behind it. */
  readonly onExport: (namespace: string, name: string) => void;
  /** The cluster's import of that name has changed, or what was made for it. */
  readonly onImport: (namespace: string, name: string) => void;
  /** A further watch has all objects. */
  readonly onRead: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

type Watch = Pick<Reflector<KubeObject>, "retry" | "stop">;

/** Returns a Service and its slices, by the name of its export or import. Undefined until they are read: the first call begins that. */
type Lookup = (
  namespace: string,
  name: string,
) => { readonly service: Stored<Service> | undefined; readonly slices: readonly Stored<EndpointSlice>[] } | undefined;

const NAME_INDEX = "name";

/** A cluster's exports and imports. Its Services and slices are watched from the first one on that is exported or made. */
export class ClusterWatches {
  readonly exports: Reflector<ServiceExport>;
  readonly imports: Reflector<ServiceImport>;
  readonly client: ClusterClient;
  /** The served version of imports. */
  readonly served: ServedResource<ServiceImport>;
  /** The exported Service. */
  readonly sources: Lookup;
  /** The Service that was made for an import. */
  readonly made: Lookup;
  /** Holds writes of an import, and creates in a namespace that the cluster lacks: it gets one with a pod, or is asked again. */
  readonly guard: WriteGuard;
  readonly #all: Watch[] = [];

  constructor({ client, hostId, budget, onExport, onImport, onRead, clock, log }: ClusterWatchesOptions) {
    this.client = client;
    this.guard = new WriteGuard({ clock });
    this.served = new ServedResource(client, serviceImports);
    const reflect = <T extends KubeObject>(
      resource: Resource<T> | OptionalResource<T>,
      changed: ClusterWatchesOptions["onExport"],
      nameOf: (object: Stored<KubeObject>) => string,
      labelSelector?: string,
    ): Reflector<T> => {
      const reflector = new Reflector<T>({
        client,
        resource,
        ...defined({ labelSelector, budget }),
        indexes: { [NAME_INDEX]: (object) => [indexed(object.metadata.namespace, nameOf(object))] },
        clock,
        log,
        onEvent: ({ object }) => changed(object.metadata.namespace ?? "", nameOf(object)),
        onState: (state) => {
          if (state === "watching" || state === "not-served") onRead();
        },
      });
      this.#all.push(reflector);
      return reflector;
    };
    const ownName = ({ metadata }: Stored<KubeObject>): string => metadata.name;
    this.exports = reflect(serviceExports, onExport, ownName);
    this.imports = reflect(serviceImports, onImport, ownName);
    const others = `!${IMPORTED_LABEL}`;
    // Slices of Legation's copies lead to other clusters.
    const ofServices = `${SERVICE_NAME_LABEL},${SLICE_MANAGER_LABEL}!=${GROUP},${others}`;
    this.sources = lookup(
      reflect(services, onExport, ownName, others),
      reflect(endpointSlices, onExport, serviceOfSlice, ofServices),
    );
    const importName = ({ metadata }: Stored<KubeObject>): string => metadata.labels?.[IMPORTED_LABEL] ?? "";
    const own = `${IMPORTED_LABEL},${HOST_LABEL}=${hostId}`;
    this.made = lookup(
      reflect(services, onImport, importName, own),
      reflect(endpointSlices, onImport, importName, own),
    );
  }

  /** Watches imports: those of an earlier network are to go. */
  start(): void {
    this.imports.start();
  }

  retry(): void {
    for (const each of this.#all) each.retry();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all.map((each) => each.stop()));
  }
}

function lookup(ofServices: Reflector<Service>, ofSlices: Reflector<EndpointSlice>): Lookup {
  return (namespace, name) => {
    ofServices.start();
    ofSlices.start();
    if (!ofServices.store.synced || !ofSlices.store.synced) return undefined;
    const value = indexed(namespace, name);
    const [service] = ofServices.store.byIndex(NAME_INDEX, value);
    return { service, slices: ofSlices.store.byIndex(NAME_INDEX, value) };
  };
}

function indexed(namespace = "", name: string): string {
  return `${namespace}/${name}`;
}
