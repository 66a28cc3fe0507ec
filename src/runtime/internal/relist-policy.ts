import { isKubeError, isLate, isServerLate, isTooLarge } from "../../kube/errors.ts";
import { LIST_TIMEOUT_MS } from "../../kube/list.ts";
import type { Clock } from "../clock.ts";

/** API servers send a bookmark about every minute. Reopening a watch that is silent for longer is always safe. */
export const WATCH_IDLE_MS = 150_000;

const LEAST_PAGE = 5;
// An etcd restore, and enough writes to pass the version before it, take longer than this.
const LONGEST_GAP_MS = 60_000;
// After this many refused watches in a row, the server is assumed not to know the resourceVersion.
const REFUSALS_BEFORE_RELIST = 3;

// Longer than an API server works on a request (--request-timeout, a minute by default) and a proxy in between delays it.
const LONGEST_LIST_TIMEOUT_MS = 120_000;

/** Decides how a reflector resumes: with a watch from a resourceVersion, or with a list. */
export class RelistPolicy {
  readonly #clock: Pick<Clock, "now">;
  /** The configured page size; `#pageSize` deviates from it after some failures. */
  readonly #paged: number;
  #version: string | undefined;
  #pageSize: number | undefined;
  #refusals = 0;
  #doubted = false;
  /** When the last watch was lost; undefined while one is open, or after a list. */
  #lostSince: number | undefined;
  #bookmarked = false;
  #lastContactMs: number | undefined;
  #listTimeoutMs = LIST_TIMEOUT_MS;

  constructor(pageSize: number, clock: Pick<Clock, "now">) {
    this.#paged = pageSize;
    this.#pageSize = pageSize;
    this.#clock = clock;
  }

  /** Returns undefined when a list is due. */
  get version(): string | undefined {
    return this.#version;
  }

  /** Undefined lists without paging. */
  get pageSize(): number | undefined {
    return this.#pageSize;
  }

  /** Deadline of a page's first byte in ms. Grows while pages are late. */
  get listTimeoutMs(): number {
    return this.#listTimeoutMs;
  }

  /** The last attempt failed, so the server may have been restored: compare its version before resuming. */
  get doubted(): boolean {
    return this.#doubted;
  }

  /** When the server last sent anything; epoch ms. */
  get lastContactMs(): number | undefined {
    return this.#lastContactMs;
  }

  heard(): void {
    this.#lastContactMs = this.#clock.now();
  }

  listed(version: string): void {
    this.#version = version;
    this.#pageSize = this.#paged;
    this.#listTimeoutMs = LIST_TIMEOUT_MS;
    this.#lostSince = undefined;
  }

  opened(): void {
    this.#refusals = 0;
    this.#lostSince = undefined;
    this.#bookmarked = false;
    this.heard();
  }

  reached(version: string): void {
    this.#version = version;
  }

  bookmark(version: string): void {
    this.#bookmarked = true;
    this.reached(version);
  }

  /** Records the comparison with the server's version. A server that went back, or may have caught up since, is listed. */
  compared(hasGoneBack: boolean): void {
    const now = this.#clock.now();
    if (hasGoneBack || now - (this.#lostSince ?? now) > LONGEST_GAP_MS) this.#version = undefined;
  }

  /** Demands a list: the store shows another version of the API, or nothing yet. */
  relist(): void {
    this.#version = undefined;
  }

  begun(): void {
    this.#doubted = false;
  }

  failed(error: unknown): void {
    const now = this.#clock.now();
    const silentSince = this.#lastContactMs ?? now;
    // A dead connection was lost when the server was last heard. Without bookmarks, silence proves nothing.
    this.#lostSince ??= now - silentSince < WATCH_IDLE_MS || !this.#bookmarked ? now : silentSince;
    this.#doubted = true;
    const isListing = this.#version === undefined;
    if (isListing && isLate(error)) this.#listTimeoutMs = Math.min(2 * this.#listTimeoutMs, LONGEST_LIST_TIMEOUT_MS);
    // The response exceeded the size limit, or the API server's own deadline: ask for smaller pages.
    const isCut = isListing && this.#pageSize !== undefined && (isTooLarge(error) || isServerLate(error));
    this.#pageSize = isCut ? Math.max(LEAST_PAGE, Math.floor((this.#pageSize ?? 0) / 2)) : this.#paged;
    if (isKubeError(error, "Gone")) {
      // An expired continue token would expire again on an equally slow list: the next list is not paged.
      if (this.#version === undefined) this.#pageSize = undefined;
      this.#version = undefined;
    } else if (isKubeError(error, "ServerError", "BadRequest")) {
      this.#refusals += 1;
      if (this.#refusals >= REFUSALS_BEFORE_RELIST) this.#version = undefined;
    } else if (!isKubeError(error) || (error.code === "BadAnswer" && error.status !== 404)) {
      // Only a list recovers an unreadable event. A 404 with an unreadable body comes from a proxy in between.
      this.#version = undefined;
    }
  }
}
