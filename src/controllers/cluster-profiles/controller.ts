import { jsonEqual } from "../../api/json.ts";
import { CLUSTER_PROFILES_LABEL, CLUSTER_PROFILES_VALUE, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type ClusterProfile, type Namespace, type ObjectKey, objectKey, objectRef } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { Registry } from "../../clusters/registry.ts";
import { applyStatus } from "../../kube/apply-status.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { resourceOf } from "../../kube/optional-resource.ts";
import { apiVersionOf, clusterProfiles, namespaces, type Resource } from "../../kube/resources.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { sendGuarded } from "../../runtime/guarded-write.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { ControllerEvents } from "../events.ts";
import { type Action, decide, isOwnProfile, type Observed } from "./decide.ts";
import { type HostAddress, STATUS_MANAGER, wantedStatus } from "./decide-status.ts";

export interface ClusterProfileOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "cluster" | "clusters">;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly events: Events<ControllerEvents>;
  readonly hostAddress: () => HostAddress;
}

type Context = ActionContext<ObjectKey>;
type Result = Promise<Expectation<Observed> | undefined>;

const WRITES = ["create", "patch", "status", "delete"] as const;

/** Keeps a ClusterProfile (KEP-4322) per Cluster in each namespace that asks for them, while the host serves that API. The key is the profile's. */
export class ClusterProfileController {
  readonly #options: ClusterProfileOptions;
  readonly #profiles: Reflector<ClusterProfile>;
  readonly #namespaces: Reflector<Namespace>;
  readonly #loop: Controller<ObjectKey, Observed, Action>;
  readonly #guard: WriteGuard<ObjectKey>;
  #address: ReturnType<ClusterProfileOptions["hostAddress"]> | undefined;

  constructor(options: ClusterProfileOptions) {
    this.#options = options;
    const { host: client, events, clock, log } = options;
    this.#guard = new WriteGuard({ clock });
    this.#profiles = new Reflector<ClusterProfile>({
      client,
      resource: clusterProfiles,
      // They tell which parts of a status are Legation's.
      keepManagedFields: true,
      clock,
      log,
      onEvent: ({ object }) => this.#loop.enqueue(objectKey(object.metadata)),
      onState: (state) => {
        if (state !== "watching") return;
        this.#namespaces.start();
        this.#enqueueAll();
      },
    });
    this.#namespaces = new Reflector<Namespace>({
      client,
      resource: namespaces,
      labelSelector: `${CLUSTER_PROFILES_LABEL}=${CLUSTER_PROFILES_VALUE}`,
      clock,
      log,
      onEvent: () => this.#enqueueAll(),
    });
    // No event tells that no namespace asks for profiles.
    void this.#namespaces.whenSynced().then(() => this.#enqueueAll());
    this.#loop = new Controller<ObjectKey, Observed, Action>(
      {
        name: "cluster-profiles",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
    for (const name of ["cluster", "clusterStatus"] as const) {
      events.on(name, (cluster) => this.#enqueue(cluster));
    }
    events.on("homeApi", () => this.#onHomeApi());
  }

  start(): void {
    this.#profiles.start();
  }

  async stop(): Promise<void> {
    await this.#profiles.stop();
    await this.#namespaces.stop();
    await this.#loop.stop();
  }

  /** A member whose tokens were read is no news here. */
  #onHomeApi(): void {
    const address = this.#options.hostAddress();
    if (jsonEqual(address, this.#address)) return;
    this.#address = address;
    this.#enqueueAll();
  }

  #enqueue(name: string): void {
    for (const namespace of this.#wantedIn()) this.#loop.enqueue(objectKey({ namespace, name }));
  }

  #enqueueAll(): void {
    for (const { metadata } of this.#options.registry.clusters()) this.#enqueue(metadata.name);
    for (const { metadata } of this.#profiles.store.list()) this.#loop.enqueue(objectKey(metadata));
  }

  #wantedIn(): ReadonlySet<string> {
    const asking = this.#namespaces.store.list().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return new Set([SYSTEM_NAMESPACE, ...asking.map(({ metadata }) => metadata.name)]);
  }

  #observe(key: ObjectKey): Observed | undefined {
    const { registry, hostAddress } = this.#options;
    // Without the API there is nothing to write, and an empty store proves nothing.
    if (this.#profiles.state !== "watching" || !this.#namespaces.store.synced) return undefined;
    const { namespace = "", name } = objectRef(key);
    const profile = this.#profiles.store.get(key);
    const cluster = this.#wantedIn().has(namespace) ? registry.cluster(name) : undefined;
    if (cluster === undefined && (profile === undefined || !isOwnProfile(profile))) {
      this.#guard.forget(key);
      return undefined;
    }
    const status = cluster && wantedStatus(cluster, hostAddress());
    const heldUntil = WRITES.flatMap((write) => {
      const until = this.#guard.heldUntil(key, write, contentOf(status));
      return until === undefined ? [] : [[write, until]];
    });
    return { namespace, name, cluster, status, profile, heldUntil: Object.fromEntries(heldUntil) };
  }

  async #execute(action: Action, context: Context): Result {
    const { recorder } = this.#options;
    if (action.type === "tell") {
      const { cluster, message } = action;
      recorder.record(referenceTo(clusters, cluster), {
        reason: "ProfileConflict",
        message,
        dedupe: `ProfileConflict ${context.key}`,
      });
      return undefined;
    }
    return sendGuarded<ObjectKey, Observed, Awaited<Result>>({
      guard: this.#guard,
      object: context.key,
      write: action.type,
      content: () => this.#content(context.key),
      send: () => this.#write(action, context),
      onWritten: (expectation) => expectation,
      onRefused: (reason) => context.log.warn({ reason }, "a ClusterProfile cannot be written"),
    });
  }

  async #write(action: Exclude<Action, { readonly type: "tell" }>, { key, signal }: Context): Result {
    const { host } = this.#options;
    const ref = objectRef(key);
    const resource: Resource<ClusterProfile> = resourceOf(clusterProfiles, action.profile);
    const { kind } = resource;
    if (action.type === "create") {
      await host.create(resource, { apiVersion: apiVersionOf(resource), kind, ...action.profile }, { signal });
      return ({ profile }) => profile !== undefined;
    }
    const { uid, resourceVersion } = action.profile.metadata;
    const isNewer: Expectation<Observed> = ({ profile }) => profile?.metadata.resourceVersion !== resourceVersion;
    if (action.type === "delete") {
      await host.delete(resource, ref, { uid, signal });
      return isNewer;
    }
    if (action.type === "patch") {
      const body = { metadata: { ...action.metadata, uid, resourceVersion } };
      await host.patch(resource, ref, { type: "merge", body }, { signal, metadataOnly: true });
      return isNewer;
    }
    const applied = { status: action.status, fieldManager: STATUS_MANAGER, force: true, signal };
    const written = await applyStatus(host, resource, { ...ref, uid }, applied);
    const content = this.#content(key);
    if (written.metadata.resourceVersion === resourceVersion) {
      this.#guard.hold(key, "status", "NoEffect", { content });
      return () => true;
    }
    this.#guard.written(key, "status", { status: content }, { content });
    return isNewer;
  }

  #content(key: ObjectKey): string {
    const cluster = this.#options.registry.cluster(objectRef(key).name);
    return contentOf(cluster && wantedStatus(cluster, this.#options.hostAddress()));
  }
}

function contentOf(status: object | undefined): string {
  return JSON.stringify(status ?? {});
}
