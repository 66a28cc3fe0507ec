import { virtualNodeName } from "../../api/keys.ts";
import { type KubeNode, objectKey } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { ControllerEvents } from "../events.ts";
import type { Kubelets } from "./model.ts";

const SERVE_AGAIN_MS = 5_000;

export interface NodeServingOptions extends ControllerOptions {
  readonly kubelets: Kubelets;
  readonly registry: Pick<Registry, "cluster" | "clusters">;
  readonly nodes: ReadStore<KubeNode>;
  readonly events: Events<ControllerEvents>;
}

/** Serves the kubelet API of every Cluster's node, in the background: pods do not need it to run. */
export class NodeServing {
  readonly #options: NodeServingOptions;
  readonly #abort = new AbortController();
  #running: Promise<void> | undefined;
  #ready = false;

  constructor(options: NodeServingOptions) {
    this.#options = options;
    options.events.on("cluster", (name) => {
      if (this.#ready) void this.#follow(name);
    });
  }

  /** Starts to serve. Call it once proxies and members have been read. */
  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#running;
    await this.#options.kubelets.stop();
  }

  async #run(): Promise<void> {
    const { kubelets, registry, clock, log } = this.#options;
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        await kubelets.start(signal);
        break;
      } catch (error) {
        if (signal.aborted) return;
        log.error({ err: error }, "the kubelet API does not serve yet");
        await clock.sleep(SERVE_AGAIN_MS, signal).catch(() => {});
      }
    }
    // Nodes that have a port get it back before others may take it.
    const names = registry.clusters().map(({ metadata }) => metadata.name);
    const known = (name: string): number => (this.#portOf(name) === undefined ? 1 : 0);
    for (const name of names.sort((one, other) => known(one) - known(other))) {
      if (!signal.aborted) await this.#follow(name);
    }
    this.#ready = true;
    for (const { metadata } of registry.clusters()) void this.#follow(metadata.name);
  }

  async #follow(name: string): Promise<void> {
    const { kubelets, registry, log } = this.#options;
    try {
      if (registry.cluster(name) === undefined) await kubelets.withdraw(name);
      else await kubelets.serve(name, this.#portOf(name));
    } catch (error) {
      log.error({ err: error, member: name }, "kubelet API");
    }
  }

  #portOf(name: string): number | undefined {
    const node = this.#options.nodes.get(objectKey({ name: virtualNodeName(name) }));
    return node?.status?.daemonEndpoints?.kubeletEndpoint?.Port;
  }
}
