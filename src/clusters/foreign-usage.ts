import { HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import { type Amounts, addAmounts } from "../api/quantity.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { pods } from "../kube/resources.ts";
import { podRequests } from "../placement/requests.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

// Others' pods tell which member is emptier, no more: what is minutes old serves for that, and a member with 10,000 of them
// sends 20 pages each time.
const PERIOD_MS = 5 * 60_000;
const PAGE = 500;
// More pods than any cluster has: a member that never ends its list.
const MOST_PAGES = 2_000;
// Between two pages, so that one large member neither holds up the process nor is held up itself.
const PAGE_DELAY_MS = 200;
const RUNNING = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!=";

/** Reads from time to time what pods that are not this host's request in a member, and keeps only the sum. */
export class ForeignUsage {
  readonly #options: ForeignUsageOptions;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #reading: Promise<void> = Promise.resolve();
  #sum: Amounts | undefined;

  constructor(options: ForeignUsageOptions) {
    this.#options = options;
  }

  /** As last read; undefined before that. */
  get sum(): Amounts | undefined {
    return this.#sum;
  }

  start(): void {
    this.#plan(0);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#timer?.cancel();
    await this.#reading;
  }

  #plan(delayMs: number): void {
    if (this.#abort.signal.aborted) return;
    this.#timer = this.#options.clock.after(delayMs, () => {
      this.#reading = this.#readPage({}, undefined, 1);
    });
  }

  async #readPage(sum: Record<string, number>, page: string | undefined, number: number): Promise<void> {
    const { client, hostId, onChange, log } = this.#options;
    try {
      const { items, continue: next } = await client.list(pods, {
        // Proxies of a member that is a host itself run elsewhere.
        labelSelector: `${HOST_LABEL}!=${hostId},${PROXY_LABEL}!=${PROXY_LABEL_VALUE}`,
        fieldSelector: RUNNING,
        limit: PAGE,
        dropManagedFields: true,
        signal: this.#abort.signal,
        ...(page === undefined ? {} : { continue: page }),
      });
      for (const pod of items) addAmounts(sum, podRequests(pod));
      if (next !== undefined && number < MOST_PAGES) {
        this.#timer = this.#options.clock.after(PAGE_DELAY_MS, () => {
          this.#reading = this.#readPage(sum, next, number + 1);
        });
        return;
      }
      this.#sum = sum;
      onChange();
    } catch (error) {
      // What was read before stays: members differ by it, and the next time is soon enough.
      if (!isKubeError(error)) log.error({ err: error }, "others' pods cannot be counted");
    }
    this.#plan(PERIOD_MS);
  }
}

export interface ForeignUsageOptions {
  readonly client: ClusterClient;
  readonly hostId: string;
  readonly clock: Clock;
  /** The sum was read anew. */
  readonly onChange: () => void;
  readonly log: Logger;
}
