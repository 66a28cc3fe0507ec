import { DELEGATION_LABEL, virtualNodeName } from "../../../api/keys.ts";
import {
  type KubeNode,
  type KubeObject,
  type Namespace,
  objectKey,
  objectRef,
  type ServiceImport,
  type Stored,
} from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { MemberWatches } from "../../../clusters/member-watches.ts";
import type { Registry } from "../../../clusters/registry.ts";
import { exportConditions } from "../../../copies/export-conditions.ts";
import { derivedService, importObject, importSlice, isOwnImport } from "../../../copies/import-objects.ts";
import { importedSlice } from "../../../copies/import-slices.ts";
import { type Networks, networkOf } from "../../../copies/joined-slices.ts";
import { type MergedExports, mergeExports } from "../../../copies/service-imports.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError, isNamespaceTerminating } from "../../../kube/errors.ts";
import { namespaces } from "../../../kube/resources.ts";
import { isNodeReady } from "../../../placement/node-fit.ts";
import type { HostIdentity } from "../../../pods/delegate.ts";
import {
  type ActionContext,
  Controller,
  type ControllerOptions,
  type Expectation,
} from "../../../runtime/controller.ts";
import type { Events } from "../../../runtime/event-bus.ts";
import { sendGuarded } from "../../../runtime/guarded-write.ts";
import { Reflector } from "../../../runtime/reflector.ts";
import type { ReadStore } from "../../../runtime/store.ts";
import type { ControllerEvents } from "../../events.ts";
import { ClusterWatches } from "./cluster-watches.ts";
import { decideImport, type ImportAction, type ObservedImport, type WantedImport } from "./decide.ts";
import { type Exporters, exportersOf, type ImportRef, isStanding, type WatchedCluster } from "./exporters.ts";
import { contentOf, isShown, nameOf, sendWrite } from "./writes.ts";

export interface ImportControllerOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "members" | "member">;
  readonly networks: () => Networks;
  /** The virtual nodes. */
  readonly nodes: Pick<ReadStore<KubeNode>, "get">;
  readonly events: Events<ControllerEvents>;
}

/** `CLUSTER NAMESPACE/NAME`: an import in a cluster, and its export there. CLUSTER is empty for the host. */
type ImportKey = `${string} ${string}/${string}`;
type Result = Promise<Expectation<ObservedImport> | undefined>;

interface ClusterRef extends ImportRef {
  readonly cluster: string | undefined;
}

const CREATE = "create";
const NOTHING = { service: undefined, slices: [] };

/** Implements the Multi-Cluster Services API (KEP-1645) for the clusters of joined networks. */
export class ImportController {
  readonly #options: ImportControllerOptions;
  readonly #namespaces: Reflector<Namespace>;
  readonly #host: ClusterWatches;
  readonly #members: MemberWatches<ClusterWatches>;
  readonly #loop: Controller<ImportKey, ObservedImport, ImportAction>;

  constructor(options: ImportControllerOptions) {
    this.#options = options;
    const { host, clock, log, events } = options;
    this.#namespaces = new Reflector<Namespace>({
      client: host,
      resource: namespaces,
      labelSelector: DELEGATION_LABEL,
      metadataOnly: true,
      clock,
      log,
      onEvent: ({ object }) => this.#enqueueKnown(({ namespace }) => namespace === object.metadata.name),
      onState: () => this.#enqueueKnown(() => true),
    });
    this.#host = this.#watch(host, undefined);
    this.#members = new MemberWatches((member) => this.#watch(member.client, member));
    this.#loop = new Controller<ImportKey, ObservedImport, ImportAction>(
      {
        name: "imports",
        observe: (key) => this.#observe(key),
        decide: decideImport,
        execute: (action, context) => this.#execute(action, context),
        // A slice that is refused keeps none of the others from being written.
        standsAlone: ({ kind }) => kind === "slice",
      },
      options,
    );
    events.onAny(["cluster", "networks"], () => this.#onClusters());
    events.on("nodeReadiness", () => this.#enqueueKnown(() => true));
    events.on("connection", ({ name }) => this.#enqueueKnown(({ cluster }) => cluster === name));
    events.on("delegate", ({ name }, key) => this.#onNamespace(name, objectRef(key).namespace ?? ""));
  }

  start(): void {
    this.#namespaces.start();
    this.#host.start();
    this.#host.exports.start();
    this.#onClusters();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#namespaces.stop(), this.#host.stop(), this.#members.stop()]);
    await this.#loop.stop();
  }

  #watch(client: ClusterClient, member: Member | undefined): ClusterWatches {
    const { identity, clock, log } = this.#options;
    return new ClusterWatches({
      client,
      hostId: identity.id,
      budget: member?.memory,
      onExport: (namespace, name) => this.#onExport({ namespace, name }),
      onImport: (namespace, name) => this.#loop.enqueue(keyOf(member?.name, { namespace, name })),
      onRead: () => this.#enqueueAll(),
      clock,
      log: member === undefined ? log : log.child({ member: member.name }),
    });
  }

  #onClusters(): void {
    const members = this.#options.registry.members();
    this.#members.follow(members);
    const { members: joined } = this.#options.networks();
    for (const [{ name }, watches] of this.#members) if (joined.has(name)) watches.exports.start();
    this.#enqueueAll();
  }

  /** Most Services are not exported: their changes concern no import. */
  #onExport(ref: ImportRef): void {
    const isExported = this.#clusters().some(({ watches }) => watches.exports.store.get(objectKey(ref)) !== undefined);
    for (const { cluster } of this.#clusters()) {
      if (isExported || this.#loop.knows(keyOf(cluster, ref))) this.#loop.enqueue(keyOf(cluster, ref));
    }
  }

  #onNamespace(cluster: string, namespace: string): void {
    const guard = this.#watches(cluster)?.guard;
    if (guard?.of(namespace) === undefined) return;
    guard.forget(namespace);
    this.#enqueueKnown((ref) => ref.cluster === cluster && ref.namespace === namespace);
  }

  #enqueueKnown(concerns: (ref: ClusterRef) => boolean): void {
    this.#loop.enqueueKnown((key) => concerns(refOf(key)));
  }

  #enqueueAll(): void {
    const clusters = this.#clusters();
    const refs = clusters.flatMap(({ watches }) => [...watches.exports.store.list(), ...watches.imports.store.list()]);
    for (const { metadata } of refs) {
      const { namespace = "", name } = metadata;
      for (const { cluster } of clusters) this.#loop.enqueue(keyOf(cluster, { namespace, name }));
    }
  }

  #clusters(): readonly WatchedCluster[] {
    const members = [...this.#members].map(([member, watches]) => ({ cluster: member.name, watches }));
    return [{ cluster: undefined, watches: this.#host }, ...members];
  }

  #watches(cluster: string | undefined): ClusterWatches | undefined {
    return this.#clusters().find((one) => one.cluster === cluster)?.watches;
  }

  #observe(key: ImportKey): ObservedImport | undefined {
    const { identity, networks, registry } = this.#options;
    const ref = refOf(key);
    const clusters = this.#clusters();
    const own = this.#watches(ref.cluster);
    const isAnswering = ref.cluster === undefined || registry.member(ref.cluster)?.reachable === true;
    if (own === undefined || !isAnswering || !this.#namespaces.store.synced) return undefined;
    if (!own.imports.store.synced || own.imports.state === "not-served") return undefined;
    const isDelegated = this.#namespaces.store.get(objectKey({ name: ref.namespace })) !== undefined;
    const seen = exportersOf(ref, { to: ref.cluster, networks: networks(), clusters });
    const merged = isDelegated ? mergeExports(seen.services) : undefined;
    const imported = networkOf(networks(), ref.cluster) === undefined ? undefined : merged;
    const there = own.imports.store.get(objectKey(ref));
    const exported = this.#exported(ref, own, { isDelegated, merged, unread: seen.unread });
    const isOver = imported === undefined && there === undefined;
    const made = isOver && !this.#loop.knows(key) ? NOTHING : own.made(ref.namespace, ref.name);
    if (made === undefined) return undefined;
    if (isOver && exported === undefined && made.service === undefined && made.slices.length === 0) {
      own.guard.forget(key);
      return undefined;
    }
    const names = (all: Exporters["unread"]): ReadonlySet<string> =>
      new Set(all.map((cluster) => cluster ?? identity.name));
    return {
      wanted: imported && this.#wanted(ref, imported, seen, { there, service: made.service }),
      import: there,
      ...made,
      isForeign: there !== undefined && !isOwnImport(there, identity),
      unread: names(seen.unread),
      keeps: names(seen.unread.filter((cluster) => !this.#isLost(cluster))),
      exported,
      heldUntil: (write) =>
        own.guard.heldUntil(key, nameOf(write), contentOf(write)) ??
        (write.type === "create" ? own.guard.heldUntil(ref.namespace, CREATE) : undefined),
    };
  }

  /** Returns the cluster's own export of the name. Undefined until it is known what its conditions are to be. */
  #exported(
    ref: ClusterRef,
    own: ClusterWatches,
    {
      isDelegated,
      merged,
      unread,
    }: { isDelegated: boolean; merged: MergedExports | undefined; unread: Exporters["unread"] },
  ): ObservedImport["exported"] {
    const { host, members } = this.#options.networks();
    const object = own.exports.store.get(objectKey(ref));
    const isInNetwork = ref.cluster === undefined || members.has(ref.cluster);
    if (object === undefined || !isInNetwork || !isStanding(object)) return undefined;
    const sources = own.sources(ref.namespace, ref.name);
    if (sources === undefined || (unread.length > 0 && (object.status?.conditions ?? []).length > 0)) return undefined;
    const isImported = host !== undefined || members.size > 0;
    const conflicts = merged?.conflicts ?? [];
    return {
      object,
      conditions: exportConditions({ exported: object, service: sources.service, isDelegated, isImported, conflicts }),
    };
  }

  #wanted(
    ref: ClusterRef,
    merged: MergedExports,
    { services: exporters }: Exporters,
    { there, service }: Pick<ObservedImport, "service"> & { readonly there: Stored<ServiceImport> | undefined },
  ): WantedImport {
    const { identity, networks } = this.#options;
    const to = { to: ref.cluster, networks: networks() };
    const slices = exporters.flatMap((exporter) =>
      this.#isLost(exporter.cluster)
        ? []
        : exporter.slices.flatMap((slice) => importedSlice(slice, exporter, merged.spec, to) ?? []),
    );
    return {
      import: importObject(ref, merged, service, identity),
      service: there && derivedService(ref, merged, { owner: there, isNew: service === undefined }, identity),
      slices: there === undefined ? [] : slices.map((slice) => importSlice(ref, slice, there, identity)),
      clusters: [...new Set(exporters.map(({ cluster }) => cluster ?? identity.name))],
    };
  }

  /** Reports whether the member's node is not ready: its pods' endpoints on the host are not, either. */
  #isLost(cluster: string | undefined): boolean {
    const node =
      cluster === undefined ? undefined : this.#options.nodes.get(objectKey({ name: virtualNodeName(cluster) }));
    return node !== undefined && !isNodeReady(node);
  }

  async #execute(action: ImportAction, { key, signal, log }: ActionContext<ImportKey>): Result {
    const { cluster, namespace } = refOf(key);
    const watches = this.#watches(cluster);
    if (watches === undefined) return undefined;
    const { guard } = watches;
    const [write, content] = [nameOf(action), contentOf(action)];
    return sendGuarded<string, ObservedImport, Stored<KubeObject> | undefined>({
      guard,
      object: key,
      write,
      content: () => content,
      send: async () => {
        try {
          const written = await sendWrite(watches, action, signal);
          if (written === undefined && action.type === "create") guard.hold(key, write, "Refused", { content });
          return written;
        } catch (error) {
          watches.served.doubt(error);
          if (action.type !== "create" || !isKubeError(error)) throw error;
          if (error.code === "NotFound" || isNamespaceTerminating(error)) {
            guard.hold(namespace, CREATE, "Refused");
          } else if (error.code === "AlreadyExists") {
            log.warn({ write }, "an object of an import has the name of another one: it is not made");
            guard.hold(key, write, "Refused", { content });
          } else throw error;
          return undefined;
        }
      },
      onWritten: (written) => {
        if (action.type === "delete") return isShown(action);
        // The object waits for its namespace or name, or the cluster serves no imports any more.
        if (written === undefined) return () => true;
        if (action.type === "create") return isShown(action);
        if (written.metadata.resourceVersion === action.object.metadata.resourceVersion) {
          guard.hold(key, write, "NoEffect", { content });
          return () => true;
        }
        guard.written(key, write, { [write]: content }, { content });
        return isShown(action);
      },
      onRefused: (reason) => log.warn({ reason, write }, "an object of an import cannot be written"),
    });
  }
}

function keyOf(cluster: string | undefined, { namespace, name }: ImportRef): ImportKey {
  return `${cluster ?? ""} ${namespace}/${name}`;
}

function refOf(key: ImportKey): ClusterRef {
  const [cluster = "", rest = ""] = key.split(" ");
  const [namespace = "", name = ""] = rest.split("/");
  return { cluster: cluster === "" ? undefined : cluster, namespace, name };
}
