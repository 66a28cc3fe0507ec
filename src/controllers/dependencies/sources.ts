import { getHeapStatistics } from "node:v8";
import { objectKey } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ByteBudget } from "../../kube/limits.ts";
import { type DependencyKey, type DependencyKind, dependencyKey } from "../../pods/dependencies.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { digested, RESOURCES } from "./digest.ts";
import type { Digested, Source } from "./model.ts";

export interface SourcesOptions {
  readonly host: ClusterClient;
  /** The object came, changed or went. */
  readonly onSource: (key: DependencyKey) => void;
  /** A kind of a namespace has been read, or cannot be. */
  readonly onState: (kind: DependencyKind, namespace: string) => void;
  /** Whether some proxy there uses an object of the kind. */
  readonly isNeeded: (kind: DependencyKind, namespace: string) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

// Of the heap that this process may have, for one kind in one namespace: its authors may not take it from all others.
const SHARE_OF_HEAP = 1 / 16;
// Each may be as large as a megabyte.
const PAGE_SIZE = 50;
// Longer than a workload takes to replace its pods, or a CronJob to start the next.
const KEPT_MS = 5 * 60_000;
// A watch that is cut comes back within seconds; one that cannot may miss changes for as long as it likes.
const STALE_AFTER_MS = 60_000;
// Helm keeps releases in Secrets of up to a megabyte, many for each installation, which no pod mounts.
const SELECTORS: Partial<Record<DependencyKind, string>> = { Secret: "type!=helm.sh/release.v1" };

/** The objects that proxies use on the host: read only in namespaces, and only of kinds, that some proxy names. */
export class Sources {
  readonly #options: SourcesOptions;
  readonly #reflectors = new Map<string, { readonly reflector: Reflector<Digested>; timer?: Timer }>();

  constructor(options: SourcesOptions) {
    this.#options = options;
  }

  /** Starts to read where that has not been begun. */
  need(kind: DependencyKind, namespace: string): void {
    const key = `${kind}/${namespace}`;
    if (this.#reflectors.has(key)) return;
    const { host: client, clock, log, onSource, onState } = this.#options;
    const fieldSelector = SELECTORS[kind];
    const reflector = new Reflector<Digested>({
      client,
      resource: RESOURCES[kind],
      namespace,
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      pageSize: PAGE_SIZE,
      budget: new ByteBudget(getHeapStatistics().heap_size_limit * SHARE_OF_HEAP),
      transform: (object) => digested(kind, object),
      clock,
      log,
      onEvent: ({ object }) => onSource(dependencyKey({ kind, namespace, name: object.metadata.name })),
      onState: (state) => {
        if (state === "watching" || state === "backing-off") onState(kind, namespace);
      },
    });
    this.#reflectors.set(key, { reflector });
    reflector.start();
  }

  /** A proxy there has ended or gone: when it was the last, reading ends some time later. */
  release(kind: DependencyKind, namespace: string): void {
    const key = `${kind}/${namespace}`;
    const entry = this.#reflectors.get(key);
    if (entry === undefined || entry.timer !== undefined || this.#options.isNeeded(kind, namespace)) return;
    entry.timer = this.#options.clock.after(KEPT_MS, () => {
      delete entry.timer;
      if (this.#options.isNeeded(kind, namespace)) return;
      this.#reflectors.delete(key);
      void entry.reflector.stop();
    });
  }

  async stop(): Promise<void> {
    await Promise.all(
      [...this.#reflectors.values()].map(({ reflector, timer }) => {
        timer?.cancel();
        return reflector.stop();
      }),
    );
  }

  /** Its watch has not come back for a while: nobody knows what has changed since, and pods must not start with less. */
  #isStale({ failing }: Reflector<Digested>): boolean {
    return failing !== undefined && this.#options.clock.now() - failing.since > STALE_AFTER_MS;
  }

  /** What is known of one object. */
  of(kind: DependencyKind, namespace: string, name: string): Source {
    const reflector = this.#reflectors.get(`${kind}/${namespace}`)?.reflector;
    if (reflector?.store.synced !== true || this.#isStale(reflector)) {
      if (reflector?.state !== "backing-off") return { state: "unknown" };
      const { plural } = RESOURCES[kind];
      const reason = reflector.failing?.reason ?? "not yet";
      const where = namespace === "" ? "" : ` of namespace ${namespace}`;
      const message = `${plural}${where} cannot be read on the host: ${reason}; if it is for want of access, run \`legation install\` again`;
      return { state: "unknown", message };
    }
    const object = reflector.store.get(objectKey({ namespace, name }));
    return object === undefined ? { state: "missing" } : { state: "present", object };
  }
}
