import { RELAY_ANNOTATION, virtualNodeName } from "../../api/keys.ts";
import {
  type EndpointSlice,
  type ObjectKey,
  objectKey,
  objectRef,
  type Pod,
  type Service,
  type Stored,
} from "../../api/kubernetes.ts";
import {
  MEMBER_RELAY_NAMESPACE,
  MEMBER_RELAY_SERVICE,
  portOf,
  RELAY_NAMESPACE,
  RELAY_SERVICE,
  RELAY_SLICE_MANAGER,
} from "../../api/relay.ts";
import { hasSelector, SERVICE_NAME_LABEL, SLICE_MANAGER_LABEL, serviceOfSlice } from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { endpointSlices, services } from "../../kube/resources.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { sendGuarded } from "../../runtime/guarded-write.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { ControllerEvents } from "../events.ts";
import { PLACE_INDEX, placeOf } from "../proxies.ts";
import { decide, type ObservedRelay, type RelayAction } from "./decide.ts";
import { PortRecord } from "./ports.ts";
import { recordedPorts, relayedPorts, relaysByMember, replicasOf, slicesOf } from "./slices.ts";

export interface RelayControllerOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly proxies: Pick<ReadStore<Pod>, "countByIndex">;
  readonly events: Events<ControllerEvents>;
}

const NO_RELAY = `annotation ${RELAY_ANNOTATION}: no relay is installed on the host: legation install --relay`;
const WRITE = "slices";
const SERVICE_INDEX = "service";

/** Leads relayed Services to the replicas of `legation relay`, by EndpointSlices that record a port for each of their ports. The key is the Service's. */
export class RelayController {
  readonly #options: RelayControllerOptions;
  readonly #replicas: Reflector<EndpointSlice>;
  readonly #inMembers: Reflector<EndpointSlice>;
  readonly #slices: Reflector<EndpointSlice>;
  readonly #services: Reflector<Service>;
  readonly #ports = new PortRecord();
  readonly #guard: WriteGuard<ObjectKey>;
  readonly #loop: Controller<ObjectKey, ObservedRelay, RelayAction>;
  /** The places that have pods, as they were when slices were last asked for. */
  readonly #places = new Set<string>();
  #following = false;

  constructor(options: RelayControllerOptions) {
    this.#options = options;
    const { host: client, clock, log, events } = options;
    events.on("relayed", () => this.#follow());
    this.#guard = new WriteGuard({ clock });
    const shared = { client, resource: endpointSlices, clock, log };
    const relays = (namespace: string, service: string): Reflector<EndpointSlice> =>
      new Reflector({
        ...shared,
        namespace,
        labelSelector: `${SERVICE_NAME_LABEL}=${service}`,
        onEvent: () => {
          this.#follow();
          this.#loop.enqueueKnown(() => true);
        },
      });
    this.#replicas = relays(RELAY_NAMESPACE, RELAY_SERVICE);
    this.#inMembers = relays(MEMBER_RELAY_NAMESPACE, MEMBER_RELAY_SERVICE);
    events.on("anyProxy", ({ object }) => this.#onProxy(object));
    this.#slices = new Reflector<EndpointSlice>({
      ...shared,
      labelSelector: `${SLICE_MANAGER_LABEL}=${RELAY_SLICE_MANAGER}`,
      indexes: { [SERVICE_INDEX]: (slice) => [serviceKeyOf(slice)] },
      onEvent: ({ object }) => {
        this.#follow();
        const key = serviceKeyOf(object);
        this.#ports.remember(key, recordedPorts([object]));
        this.#loop.enqueue(key);
      },
    });
    this.#services = new Reflector<Service>({
      client,
      resource: services,
      clock,
      log,
      onEvent: ({ object }) => this.#onService(object),
    });
    this.#loop = new Controller<ObjectKey, ObservedRelay, RelayAction>(
      {
        name: "relays",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
  }

  start(): void {
    this.#replicas.start();
    this.#inMembers.start();
    this.#slices.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.stop()));
    await this.#loop.stop();
  }

  get #sources(): readonly Pick<Reflector<Service>, "stop" | "whenSynced" | "store">[] {
    return [this.#replicas, this.#inMembers, this.#slices, this.#services];
  }

  /** Reads Services from the first replica, slice or relayed Service on: other hosts pay for no watch of all their Services. */
  #follow(): void {
    if (this.#following) return;
    this.#following = true;
    this.#services.start();
    void Promise.all(this.#sources.map((each) => each.whenSynced())).then(() => {
      for (const { metadata } of this.#services.store.list()) {
        if (metadata.annotations?.[RELAY_ANNOTATION] !== undefined) this.#loop.enqueue(objectKey(metadata));
      }
      for (const slice of this.#slices.store.list()) this.#loop.enqueue(serviceKeyOf(slice));
    });
  }

  /** Notes the first and the last pod of a namespace in a member. A hostile member cannot add one: delegates do not count. */
  #onProxy(proxy: Stored<Pod>): void {
    const { namespace } = proxy.metadata;
    const place = placeOf(namespace, proxy.spec?.nodeName);
    const isIn = this.#hasPods(place);
    if (isIn === this.#places.has(place)) return;
    if (isIn) this.#places.add(place);
    else this.#places.delete(place);
    this.#loop.enqueueKnown((key) => objectRef(key).namespace === namespace);
  }

  #hasPods(place: string): boolean {
    return this.#options.proxies.countByIndex(PLACE_INDEX, place) > 0;
  }

  #onService({ metadata }: Stored<Service>): void {
    const { namespace, annotations = {} } = metadata;
    const key = objectKey(metadata);
    if (annotations[RELAY_ANNOTATION] !== undefined || this.#loop.knows(key)) this.#loop.enqueue(key);
    // A Service to which others lead came or went.
    this.#loop.enqueueKnown((other) => {
      const service = this.#services.store.get(other);
      return (
        objectRef(other).namespace === namespace && service?.metadata.annotations?.[RELAY_ANNOTATION] === metadata.name
      );
    });
  }

  #observe(key: ObjectKey): ObservedRelay | undefined {
    if (!this.#sources.every(({ store }) => store.synced)) return undefined;
    const found = this.#services.store.get(key);
    const names = found === undefined ? [] : relayedPorts(found).map(({ name = "" }) => name);
    const service = names.length > 0 ? found : undefined;
    const slices = this.#slices.store.byIndex(SERVICE_INDEX, key);
    if (service === undefined) this.#ports.release(key);
    if (service === undefined && slices.length === 0) {
      this.#guard.forget(key);
      return undefined;
    }
    const recorded = this.#ports.assign(key, service === undefined ? [] : names, recordedPorts(slices));
    const replicas = replicasOf(this.#replicas.store.list());
    const problem = service && this.#problem(service);
    const { namespace } = objectRef(key);
    const inMembers = (addressType: string) =>
      relaysByMember(this.#inMembers.store.list(), addressType, (cluster) =>
        this.#hasPods(placeOf(namespace, virtualNodeName(cluster))),
      );
    return {
      service,
      // Without a relay nothing may be written, and slices keep the ports for the next one.
      wanted:
        service === undefined ? [] : this.#isInstalled ? slicesOf(service, recorded, replicas, inMembers) : slices,
      slices,
      problem,
      heldUntil: this.#guard.heldUntil(key, WRITE),
    };
  }

  /** The Service of an installed relay has a slice, also without a replica. */
  get #isInstalled(): boolean {
    return this.#replicas.store.list().length > 0;
  }

  #problem({ metadata, spec }: Stored<Service>): string | undefined {
    const { namespace = "", annotations = {} } = metadata;
    const name = annotations[RELAY_ANNOTATION] ?? "";
    const target = this.#services.store.get(objectKey({ namespace, name }));
    const annotation = `annotation ${RELAY_ANNOTATION}: ${name}`;
    if (target === undefined) return `${annotation}: there is no Service ${name} in namespace ${namespace}; create it`;
    if (!hasSelector(target))
      return `${annotation}: the Service ${name} has no spec.selector, so it has no pods; name one that selects pods`;
    const wanted = (spec?.ports ?? []).map(({ port, targetPort = port }) => targetPort);
    const missing = wanted.find((each) => portOf(target, each) === undefined);
    if (missing === undefined && !this.#isInstalled) return NO_RELAY;
    return missing === undefined
      ? undefined
      : `spec.ports: the Service ${name} has no port ${missing}; write one of its ports, by number or name, as targetPort`;
  }

  #execute(
    action: RelayAction,
    { key, signal, log }: ActionContext<ObjectKey>,
  ): Promise<Expectation<ObservedRelay> | undefined> {
    const { host, recorder } = this.#options;
    if (action.type === "tell") {
      const { service, message } = action;
      recorder.record(referenceTo(services, service), {
        reason: "NotRelayed",
        message,
        dedupe: `NotRelayed ${key} ${message}`,
      });
      return Promise.resolve(undefined);
    }
    const { slice } = action;
    const { name = "", namespace = "", uid, resourceVersion } = slice.metadata ?? {};
    return sendGuarded<ObjectKey, ObservedRelay, unknown>({
      guard: this.#guard,
      object: key,
      write: WRITE,
      send: () => {
        if (action.type === "create") return host.create(endpointSlices, slice, { signal });
        if (action.type === "replace") return host.replace(endpointSlices, slice, { signal });
        return host.delete(endpointSlices, { namespace, name }, { uid, signal });
      },
      onWritten:
        () =>
        ({ slices }) =>
          slices.find(({ metadata }) => metadata.name === name)?.metadata.resourceVersion !== resourceVersion,
      onRefused: (reason) => log.warn({ reason }, "an EndpointSlice of a relayed Service cannot be written"),
    });
  }
}

function serviceKeyOf(slice: Stored<EndpointSlice>): ObjectKey {
  const { namespace = "" } = slice.metadata;
  return objectKey({ namespace, name: serviceOfSlice(slice) });
}
