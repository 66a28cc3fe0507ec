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

type Named = (namespace: string, name: string) => void;
type NameOf = (object: Stored<KubeObject>) => string;

const NAME_INDEX = "name";

/** A cluster's exports and imports. Its Services and slices are watched from the first one on that is exported or made. */
export class ClusterWatches {
  readonly exports: Reflector<ServiceExport>;
  readonly imports: Reflector<ServiceImport>;
  readonly client: ClusterClient;
  /** The served version of imports. */
  readonly served: ServedResource<ServiceImport>;
  readonly #services: Reflector<Service>;
  readonly #slices: Reflector<EndpointSlice>;
  readonly #madeServices: Reflector<Service>;
  readonly #madeSlices: Reflector<EndpointSlice>;

  constructor(options: ClusterWatchesOptions) {
    const { client, onExport, onImport, hostId } = options;
    this.client = client;
    this.served = new ServedResource(client, serviceImports);
    const reflect = <T extends KubeObject>(
      resource: Resource<T> | OptionalResource<T>,
      changed: Named,
      { nameOf = ({ metadata }) => metadata.name, labelSelector }: { nameOf?: NameOf; labelSelector?: string } = {},
    ): Reflector<T> => {
      const { budget, onRead, clock, log } = options;
      return new Reflector<T>({
        client,
        resource,
        ...defined({ labelSelector, budget }),
        indexes: { [NAME_INDEX]: (object) => [indexed(object.metadata.namespace ?? "", nameOf(object))] },
        clock,
        log,
        onEvent: ({ object }) => changed(object.metadata.namespace ?? "", nameOf(object)),
        onState: (state) => {
          if (state === "watching" || state === "not-served") onRead();
        },
      });
    };
    this.exports = reflect(serviceExports, onExport);
    this.imports = reflect(serviceImports, onImport);
    const others = `!${IMPORTED_LABEL}`;
    this.#services = reflect(services, onExport, { labelSelector: others });
    // Slices of Legation's copies lead to other clusters.
    const labelSelector = `${SERVICE_NAME_LABEL},${SLICE_MANAGER_LABEL}!=${GROUP},${others}`;
    this.#slices = reflect(endpointSlices, onExport, { nameOf: serviceOfSlice, labelSelector });
    const made = {
      nameOf: ({ metadata }: Stored<KubeObject>) => metadata.labels?.[IMPORTED_LABEL] ?? "",
      labelSelector: `${IMPORTED_LABEL},${HOST_LABEL}=${hostId}`,
    };
    this.#madeServices = reflect(services, onImport, made);
    this.#madeSlices = reflect(endpointSlices, onImport, made);
  }

  /** Watches imports: those of an earlier network are to go. */
  start(): void {
    this.imports.start();
  }

  retry(): void {
    for (const each of this.#all()) each.retry();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all().map((each) => each.stop()));
  }

  /** Returns the Service of that name, and its slices. Undefined until they are read: the first call begins that. */
  sources(
    namespace: string,
    name: string,
  ): { readonly service: Stored<Service> | undefined; readonly slices: readonly Stored<EndpointSlice>[] } | undefined {
    return objectsOf(this.#services, this.#slices, indexed(namespace, name));
  }

  /** Returns what was made for the import of that name. Undefined until it is read: the first call begins that. */
  made(namespace: string, name: string): ReturnType<ClusterWatches["sources"]> {
    return objectsOf(this.#madeServices, this.#madeSlices, indexed(namespace, name));
  }

  #all(): Pick<Reflector<KubeObject>, "retry" | "stop">[] {
    return [this.exports, this.imports, this.#services, this.#slices, this.#madeServices, this.#madeSlices];
  }
}

function objectsOf(
  services: Reflector<Service>,
  slices: Reflector<EndpointSlice>,
  value: string,
): ReturnType<ClusterWatches["sources"]> {
  services.start();
  slices.start();
  if (!services.store.synced || !slices.store.synced) return undefined;
  const [service] = services.store.byIndex(NAME_INDEX, value);
  return { service, slices: slices.store.byIndex(NAME_INDEX, value) };
}

function indexed(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
