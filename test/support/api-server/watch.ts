import type { Change, StoredObject } from "./object-store.ts";

/** An event of a watch as its reader gets it. */
export type WatchedEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: StoredObject }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

/** One open watch: events wait here until they are read. */
export class Watch {
  readonly #events: WatchedEvent[] = [];
  readonly #isSelected: (object: StoredObject) => boolean;
  readonly #isServed: () => boolean;
  readonly #onClose: () => void;
  #isEnded = false;
  #wake = Promise.withResolvers<void>();

  constructor(isSelected: (object: StoredObject) => boolean, isServed: () => boolean, onClose: () => void) {
    this.#isSelected = isSelected;
    this.#isServed = isServed;
    this.#onClose = onClose;
  }

  /** Returns the next event that has happened, if any. */
  next(): WatchedEvent | undefined {
    return this.#events.shift();
  }

  /** The server ends the watch, or no longer serves the resource, and all events are read. */
  get isOver(): boolean {
    return this.#events.length === 0 && (this.#isEnded || !this.#isServed());
  }

  end(): void {
    this.#isEnded = true;
    this.wake();
  }

  /** Resolves after the next event, `wake`, or when the signal fires. */
  async changed(signal?: AbortSignal): Promise<void> {
    if (this.#events.length > 0 || signal?.aborted === true) return;
    const { promise, resolve } = this.#wake;
    const aborted = (): void => resolve();
    signal?.addEventListener("abort", aborted);
    await promise;
    signal?.removeEventListener("abort", aborted);
  }

  /** Shows an object that was there before. */
  show(object: StoredObject): void {
    if (this.#isSelected(object)) this.#push({ type: "ADDED", object });
  }

  /** Tells a change: an object that is selected no more is deleted for this watch, and one that is now is added. */
  tell({ type, object, before }: Change): void {
    const isShown = type !== "DELETED" && this.#isSelected(object);
    const wasShown = before !== undefined && this.#isSelected(before);
    if (!isShown && !wasShown) return;
    // The deleted object is the last one that was selected, with the version of the change.
    const { resourceVersion } = object.metadata;
    const last =
      isShown || before === undefined ? object : { ...before, metadata: { ...before.metadata, resourceVersion } };
    this.#push({ type: isShown ? (wasShown ? "MODIFIED" : "ADDED") : "DELETED", object: last });
  }

  bookmark(resourceVersion: string): void {
    this.#push({ type: "BOOKMARK", resourceVersion });
  }

  wake(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  close(): void {
    this.#onClose();
    this.wake();
  }

  #push(event: WatchedEvent): void {
    this.#events.push(event);
    this.wake();
  }
}
