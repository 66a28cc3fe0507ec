import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { pods } from "../../src/kube/resources.ts";
import { isTerminal } from "../../src/pods/pod-state.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

/** The times when this process first saw each pod of a namespace in each state, and saw it go; milliseconds of `performance.now()`. */
export class PodWatch {
  readonly seen: Map<string, number> = new Map();
  readonly running: Map<string, number> = new Map();
  readonly ended: Map<string, number> = new Map();
  readonly gone: Map<string, number> = new Map();
  /** Pods that came. One that comes again under its name is another. */
  came = 0;
  /** Times that a pod was seen not to have ended after it had. */
  revived = 0;
  /** Called with each pod that has ended. */
  onEnded: (name: string) => void = () => {};
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
        if (type === "added") this.came += 1;
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

  /** Forgets the times of a pod that is gone: a long run has many. */
  forget(name: string): void {
    for (const times of [this.seen, this.running, this.ended, this.gone]) times.delete(name);
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

  #note(pod: Stored<Pod>): void {
    const { metadata, status } = pod;
    const now = performance.now();
    if (!this.seen.has(metadata.name)) this.seen.set(metadata.name, now);
    if (status?.phase === "Running" && !this.running.has(metadata.name)) this.running.set(metadata.name, now);
    const hasEnded = isTerminal(pod);
    if (this.ended.has(metadata.name)) this.revived += hasEnded ? 0 : 1;
    else if (hasEnded) {
      this.ended.set(metadata.name, now);
      this.onEnded(metadata.name);
    }
  }
}
