import { isKubeError, isTooLarge } from "../kube/errors.ts";
import type { Clock } from "./clock.ts";

/**
 * API servers send a bookmark at least every two minutes. A longer silence of a watch is a connection that vanished without a word, or
 * a server without bookmarks; opening the watch again finds out and loses nothing.
 */
export const WATCH_IDLE_MS = 150_000;

const LEAST_PAGE = 5;
// A server can hardly be restored from a backup, and come further than it was, in less.
const LONGEST_GAP_MS = 60_000;
// A server that refuses a watch this often in a row does not know our resourceVersion.
const REFUSALS_BEFORE_RELIST = 3;

/** Where a reflector goes on, after whatever its server has sent or failed to send: by a watch from a version, or by a list. */
export class Resumption {
  readonly #clock: Pick<Clock, "now">;
  /** How many objects to ask for at once, as long as nothing speaks against it. */
  readonly #paged: number;
  #version: string | undefined;
  #pageSize: number | undefined;
  #refusals = 0;
  #doubted = false;
  /** Since when no watch has followed the server; undefined when one does, or it was listed since. */
  #lostSince: number | undefined;
  /** The watch that is open, or was last, has brought a bookmark. */
  #bookmarked = false;
  #lastContactMs: number | undefined;

  constructor(pageSize: number, clock: Pick<Clock, "now">) {
    this.#paged = pageSize;
    this.#pageSize = pageSize;
    this.#clock = clock;
  }

  /** Where the next watch begins; undefined: a list is due. */
  get version(): string | undefined {
    return this.#version;
  }

  /** How many objects a list asks for at once; undefined: for all. */
  get pageSize(): number | undefined {
    return this.#pageSize;
  }

  /** The last attempt failed: whether the server still has a past that includes `version` is to be asked. */
  get doubted(): boolean {
    return this.#doubted;
  }

  /** When the server last sent anything; epoch ms. */
  get lastContactMs(): number | undefined {
    return this.#lastContactMs;
  }

  /** The server has sent something. */
  heard(): void {
    this.#lastContactMs = this.#clock.now();
  }

  /** The whole state was read, as of this version. */
  listed(version: string): void {
    this.#version = version;
    this.#pageSize = this.#paged;
    this.#lostSince = undefined;
  }

  /** The server has accepted a watch. */
  opened(): void {
    this.#refusals = 0;
    this.#lostSince = undefined;
    this.#bookmarked = false;
    this.heard();
  }

  /** A watch has told of everything up to this version. */
  reached(version: string): void {
    this.#version = version;
  }

  /** The same, by a bookmark. */
  bookmark(version: string): void {
    this.#bookmarked = true;
    this.reached(version);
  }

  /** The server was asked how far it is. One that has gone back, or may have come as far again since, is listed. */
  compared(hasGoneBack: boolean): void {
    const now = this.#clock.now();
    if (hasGoneBack || now - (this.#lostSince ?? now) > LONGEST_GAP_MS) this.#version = undefined;
  }

  /** An attempt begins, and nothing is in doubt any more. */
  begun(): void {
    this.#doubted = false;
  }

  /** An attempt has failed. */
  failed(error: unknown): void {
    const now = this.#clock.now();
    const silentSince = this.#lastContactMs ?? now;
    // A connection that vanished without a word did so when it was last heard of; without bookmarks, silence says nothing.
    this.#lostSince ??= now - silentSince < WATCH_IDLE_MS || !this.#bookmarked ? now : silentSince;
    this.#doubted = true;
    // What is not paged may be more than an answer may hold; and so may a page.
    const isCut = isTooLarge(error) && this.#version === undefined && this.#pageSize !== undefined;
    this.#pageSize = isCut ? Math.max(LEAST_PAGE, Math.floor((this.#pageSize ?? 0) / 2)) : this.#paged;
    if (isKubeError(error, "Gone")) {
      // A continue token that expired will expire again when the list takes as long: the next one is not paged.
      if (this.#version === undefined) this.#pageSize = undefined;
      this.#version = undefined;
    } else if (isKubeError(error, "ServerError", "BadRequest")) {
      this.#refusals += 1;
      if (this.#refusals >= REFUSALS_BEFORE_RELIST) this.#version = undefined;
    } else if (!isKubeError(error) || (error.code === "BadAnswer" && error.status !== 404)) {
      // What was missed in an unreadable event can only be found by a list. (With 404, a proxy in between answers for the server.)
      this.#version = undefined;
    }
  }
}
