import { useEffect, useState } from "preact/hooks";
import type { LiveMessage, MemberRow, PodRow } from "../model.ts";

/** The live data of the page, kept by one connection to its server. */
export class LiveData {
  hostName = "";
  members: readonly MemberRow[] | undefined;
  readonly pods: Map<string, PodRow> = new Map();
  /** All pods have arrived once. */
  isComplete = false;
  problem: string | undefined;
  isConnected = false;
  /** Grows with each change of the pods. */
  version = 0;
  readonly #readers = new Set<() => void>();
  #frame: number | undefined;

  start(): void {
    const source = new EventSource("/api/live");
    source.onopen = () => this.#change(() => (this.isConnected = true));
    // The browser connects again by itself.
    source.onerror = () => this.#change(() => (this.isConnected = false));
    source.onmessage = ({ data }) => this.#change(() => this.#take(JSON.parse(String(data)) as LiveMessage));
  }

  subscribe(reader: () => void): () => void {
    this.#readers.add(reader);
    return () => this.#readers.delete(reader);
  }

  #take(message: LiveMessage): void {
    switch (message.type) {
      case "host":
        this.hostName = message.name;
        break;
      case "members":
        this.members = message.members;
        break;
      case "problem":
        this.problem = message.message;
        break;
      case "complete":
        this.isComplete = true;
        break;
      case "pods":
        if (message.isFirst) this.pods.clear();
        for (const row of message.rows) this.pods.set(row.uid, row);
        for (const uid of message.gone) this.pods.delete(uid);
        this.version += 1;
    }
  }

  /** Draws once per frame, however many messages come. */
  #change(change: () => void): void {
    change();
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined;
      for (const reader of this.#readers) reader();
    });
  }
}

export const live: LiveData = new LiveData();

/** Draws a component again with each change of the live data. */
export function useLive(): LiveData {
  const [, draw] = useState(0);
  useEffect(() => live.subscribe(() => draw((count) => count + 1)), []);
  return live;
}
