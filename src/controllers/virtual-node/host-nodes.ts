import { EXCLUDE_DISRUPTION_LABEL, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes } from "../../kube/resources.ts";
import type { Timer } from "../../runtime/clock.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";

// A host rarely gets its first node, or loses its last.
const READ_EVERY_MS = 30_000;
const COUNTED = `!${VIRTUAL_NODE_LABEL},!${EXCLUDE_DISRUPTION_LABEL}`;

export interface HostNodesOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly onChange: () => void;
}

/** Tells whether the host has nodes of its own that the node lifecycle controller counts. */
export class HostNodes {
  readonly #options: HostNodesOptions;
  readonly #abort = new AbortController();
  #counted: boolean | undefined;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;

  constructor(options: HostNodesOptions) {
    this.#options = options;
  }

  get counted(): boolean | undefined {
    return this.#counted;
  }

  /** Reads now, and again every half minute. Never rejects. */
  start(): Promise<void> {
    this.#running = this.#read().then(() => {
      if (this.#abort.signal.aborted) return;
      this.#timer = this.#options.clock.after(READ_EVERY_MS, () => void this.start());
    });
    return this.#running;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#timer?.cancel();
    await this.#running;
  }

  async #read(): Promise<void> {
    const { host, log, onChange } = this.#options;
    const { signal } = this.#abort;
    try {
      const { items } = await host.list(nodes, { labelSelector: COUNTED, limit: 1, signal });
      const counted = items.length > 0;
      if (counted === this.#counted) return;
      this.#counted = counted;
      onChange();
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, "the host's own nodes cannot be read");
    }
  }
}
