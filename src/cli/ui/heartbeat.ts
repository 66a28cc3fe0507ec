import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { Reflector } from "../../runtime/reflector.ts";

/** The parts of a reflector that tell when the API server was last heard. */
export type Watched = Pick<Reflector<never>, "lastContactMs" | "failing">;

export interface HeartbeatOptions {
  readonly host: ClusterClient;
  readonly clock: Clock;
  readonly watched: readonly Watched[];
}

// Bookmarks come once a minute, and the page says within ten seconds that the host is silent.
const PROBE_AFTER_MS = 3_000;
const PROBE_TIMEOUT_MS = 5_000;

/** Knows when the host's API server was last heard: by its watches or, while these are silent, by a list of one Cluster. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #stop = new AbortController();
  #answeredMs: number | undefined;
  #timer: Timer | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = this.#options.clock.after(PROBE_AFTER_MS, () => void this.#probe());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stop.abort();
  }

  /** Milliseconds since the host's API server was last heard. A watch that fails knows nothing since then. Undefined: never heard. */
  get silentMs(): number | undefined {
    const { clock, watched } = this.#options;
    const heard = this.#lastHeard;
    if (heard === undefined) return undefined;
    // A host that refuses a user's watch answers: the page shows the refusal.
    const failures = watched.flatMap(({ failing }) => (failing?.code === "Forbidden" ? [] : (failing?.since ?? [])));
    return Math.max(0, clock.now() - Math.min(heard, ...failures));
  }

  get #lastHeard(): number | undefined {
    const times = [this.#answeredMs, ...this.#options.watched.map(({ lastContactMs }) => lastContactMs)];
    const known = times.filter((time) => time !== undefined);
    return known.length === 0 ? undefined : Math.max(...known);
  }

  async #probe(): Promise<void> {
    const { host, clock } = this.#options;
    const { signal } = this.#stop;
    if (clock.now() - (this.#lastHeard ?? 0) >= PROBE_AFTER_MS) {
      const options = { limit: 1, metadataOnly: true, outOfTurn: true, timeoutMs: PROBE_TIMEOUT_MS, signal };
      const isAnswered = await host.list(clusters, options).then(() => true, isAnswer);
      if (isAnswered) this.#answeredMs = clock.now();
    }
    if (!signal.aborted) this.start();
  }
}

/** Reports whether the API server itself answered: a refusal is a word of it, a gateway's 502 is none. */
function isAnswer(error: unknown): boolean {
  return isKubeError(error) && error.status !== undefined && error.status < 500;
}
