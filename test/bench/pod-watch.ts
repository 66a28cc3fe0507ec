import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { pods } from "../../src/kube/resources.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

/** The times when this process first saw each pod of a namespace in each state, and saw it go; milliseconds of `performance.now()`. */
export class PodWatch {
  readonly seen: Map<string, number> = new Map();
  readonly running: Map<string, number> = new Map();
  readonly gone: Map<string, number> = new Map();
  readonly #reflector: Reflector<Pod>;
  #waiting: { readonly done: () => boolean; readonly resolve: () => void } | undefined;

  constructor(client: ClusterClient, namespace: string) {
    this.#reflector = new Reflector({
      client,
      resource: pods,
      namespace,
      clock: realClock,
      log: createLogger({ level: "silent" }),
      onEvent: ({ type, object }) => {
        if (type === "deleted") this.gone.set(object.metadata.name, performance.now());
        else this.#note(object);
        if (this.#waiting?.done() === true) this.#waiting.resolve();
      },
    });
  }

  async start(): Promise<void> {
    this.#reflector.start();
    await this.#reflector.whenSynced();
  }

  /** Resolves when so many pods have run. */
  async untilRunning(count: number): Promise<void> {
    await this.#until(() => this.running.size >= count);
  }

  /** Resolves when no pod is left. */
  async untilEmpty(): Promise<void> {
    await this.#until(() => this.#reflector.store.size === 0);
  }

  async stop(): Promise<void> {
    await this.#reflector.stop();
  }

  #until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting = { done, resolve };
    });
  }

  #note({ metadata, status }: Stored<Pod>): void {
    const now = performance.now();
    if (!this.seen.has(metadata.name)) this.seen.set(metadata.name, now);
    if (status?.phase === "Running" && !this.running.has(metadata.name)) this.running.set(metadata.name, now);
  }
}
