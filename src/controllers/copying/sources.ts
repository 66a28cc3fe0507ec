import { getHeapStatistics } from "node:v8";
import { type KubeObject, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { CopiedKind, Selectors } from "../../copies/kind.ts";
import type { Source } from "../../copies/source.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ByteBudget } from "../../kube/limits.ts";
import type { Clock } from "../../runtime/clock.ts";
import { KeyedTimers } from "../../runtime/keyed-timers.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { IndexFunction } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ObjectName } from "./model.ts";

export interface SourcesOptions<T extends KubeObject> {
  readonly host: ClusterClient;
  readonly hostId: string;
  readonly kinds: ReadonlyMap<string, CopiedKind<T>>;
  /** Each namespace is watched by itself, as long as users in it need the kind. Otherwise one watch covers the cluster. */
  readonly perNamespace: boolean;
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  /** Returns what selects the kind's sources now. Default: what its record says. */
  readonly selectors?: ((kind: string) => Selectors | undefined) | undefined;
  readonly onSource: (kind: string, object: Stored<T>) => void;
  /** An empty namespace stands for the whole cluster. */
  readonly onState: (kind: string, namespace: string) => void;
  readonly isNeeded: (kind: string, namespace: string) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

// Share of the process's heap for one kind of large objects in one namespace: its authors must not take it from all others.
const SHARE_OF_HEAP = 1 / 16;
// Large objects may have a megabyte each.
const LARGE_PAGE_SIZE = 50;
// A workload takes less to replace its pods, and most CronJobs to start the next.
const UNUSED_SOURCE_KEPT_MS = 5 * 60_000;
// A cut watch comes back within seconds. One that does not may miss changes for any time.
const STALE_AFTER_MS = 60_000;
const NAMESPACE_INDEX = "namespace";
const COPY_INDEX = "copy";

/** The host's objects that members get copies of. Read only while users need them, and some time longer. */
export class Sources<T extends KubeObject> {
  readonly #options: SourcesOptions<T>;
  readonly #reflectors = new Map<string, Reflector<T>>();
  readonly #unused: KeyedTimers<string>;
  #stopped = false;

  constructor(options: SourcesOptions<T>) {
    this.#options = options;
    this.#unused = new KeyedTimers(options.clock);
  }

  need(kind: string, namespace: string): void {
    const scope = this.#scopeOf(namespace);
    const key = `${kind}/${scope}`;
    const record = this.#options.kinds.get(kind);
    if (this.#reflectors.has(key) || record === undefined || this.#stopped) return;
    const reflector = this.#reflector(kind, scope, record);
    this.#reflectors.set(key, reflector);
    reflector.start();
    // The first event of a watch may be the first sign that it was accepted.
    void reflector.whenSynced().then(() => this.#options.onState(kind, scope));
  }

  /** Ends reading some time after the last user. */
  release(kind: string, namespace: string): void {
    const scope = this.#scopeOf(namespace);
    const key = `${kind}/${scope}`;
    const reflector = this.#reflectors.get(key);
    if (reflector === undefined || this.#unused.has(key) || this.#options.isNeeded(kind, scope)) return;
    this.#unused.start(key, UNUSED_SOURCE_KEPT_MS, () => {
      if (!this.#options.isNeeded(kind, scope)) this.#end(key);
    });
  }

  /** Reads a kind anew if it is read, since other selectors count for it. */
  renew(kind: string, namespace: string): void {
    if (this.#end(`${kind}/${this.#scopeOf(namespace)}`)) this.need(kind, namespace);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unused.stop();
    await Promise.all([...this.#reflectors.values()].map((reflector) => reflector.stop()));
  }

  of({ kind, namespace, name }: ObjectName): Source<T> {
    const reflector = this.#of(kind, namespace);
    if (reflector === undefined || !this.isRead(kind, namespace)) {
      const message = this.failure(kind, namespace);
      return { state: "unknown", ...(message === undefined ? {} : { message }) };
    }
    const record = this.#options.kinds.get(kind);
    const object =
      record?.copyName === undefined
        ? reflector.store.get(objectKey({ namespace, name }))
        : reflector.store.byIndex(COPY_INDEX, `${namespace}/${name}`)[0];
    if (object === undefined || record?.isCopied?.(object) === false) return { state: "missing" };
    return { state: "present", object };
  }

  /** Returns the objects of all namespaces, where one watch covers them. */
  all(kind: string): readonly Stored<T>[] {
    return this.#copied(kind, this.#of(kind, "")?.store.list());
  }

  inNamespace(kind: string, namespace: string): Stored<T>[] {
    return this.byIndex(kind, namespace, { index: NAMESPACE_INDEX, value: namespace });
  }

  byIndex(
    kind: string,
    namespace: string,
    { index, value }: { readonly index: string; readonly value: string },
  ): Stored<T>[] {
    return this.#copied(kind, this.#of(kind, namespace)?.store.byIndex(index, value));
  }

  #copied(kind: string, objects: Stored<T>[] = []): Stored<T>[] {
    const isCopied = this.#options.kinds.get(kind)?.isCopied;
    return isCopied === undefined ? objects : objects.filter(isCopied);
  }

  isRead(kind: string, namespace: string): boolean {
    const reflector = this.#of(kind, namespace);
    if (reflector?.store.synced !== true) return false;
    const { failing } = reflector;
    return failing === undefined || this.#options.clock.now() - failing.since <= STALE_AFTER_MS;
  }

  isPending(kind: string, namespace: string): boolean {
    const reflector = this.#of(kind, namespace);
    return reflector !== undefined && !reflector.store.synced && reflector.state !== "backing-off";
  }

  /** Returns undefined if the kind can be read, or may soon. */
  failure(kind: string, namespace: string): string | undefined {
    const reflector = this.#of(kind, namespace);
    const plural = this.#options.kinds.get(kind)?.resource.plural;
    if (reflector?.state !== "backing-off" || this.isRead(kind, namespace)) return undefined;
    const scope = this.#scopeOf(namespace);
    const where = scope === "" ? "" : ` of namespace ${scope}`;
    const reason = reflector.failing?.reason ?? "not yet";
    return `${plural}${where} cannot be read on the host: ${reason}; if it is for want of access, run \`legation install\` again`;
  }

  /** Returns why objects that users need cannot be read. */
  failures(): readonly string[] {
    return [...this.#reflectors.keys()].flatMap((key) => {
      const [kind = "", namespace = ""] = key.split("/");
      return this.failure(kind, namespace) ?? [];
    });
  }

  #end(key: string): boolean {
    void this.#reflectors.get(key)?.stop();
    return this.#reflectors.delete(key);
  }

  #scopeOf(namespace: string): string {
    return this.#options.perNamespace ? namespace : "";
  }

  #of(kind: string, namespace: string): Reflector<T> | undefined {
    return this.#reflectors.get(`${kind}/${this.#scopeOf(namespace)}`);
  }

  #reflector(
    kind: string,
    scope: string,
    { resource, copyName, sources, withoutContent, applied }: CopiedKind<T>,
  ): Reflector<T> {
    const { host: client, hostId, indexes, selectors, clock, log, onSource, onState } = this.#options;
    return new Reflector<T>({
      client,
      resource,
      ...(scope === "" ? {} : { namespace: scope }),
      ...(selectors?.(kind) ?? sources),
      ...(withoutContent === undefined && applied === undefined
        ? {}
        : {
            pageSize: LARGE_PAGE_SIZE,
            budget: new ByteBudget(getHeapStatistics().heap_size_limit * SHARE_OF_HEAP),
          }),
      indexes: {
        ...indexes,
        [NAMESPACE_INDEX]: ({ metadata: { namespace = "" } }) => [namespace],
        ...(copyName === undefined
          ? {}
          : { [COPY_INDEX]: (object) => [`${object.metadata.namespace ?? ""}/${copyName(object.metadata, hostId)}`] }),
      },
      clock,
      log,
      onEvent: ({ object }) => onSource(kind, object),
      onState: (state) => {
        if (state === "watching" || state === "backing-off") onState(kind, scope);
      },
    });
  }
}
