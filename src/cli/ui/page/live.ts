import { useEffect, useState } from "preact/hooks";
import type { HiddenFromUser, LiveMessage, MemberRow, PodRow, SignedIn, WholeRows } from "../model.ts";
import { refusalOf } from "./document.ts";
import { type Heard, isOld } from "./freshness.ts";
import { Rates } from "./rates.ts";
import { PodWorkloads } from "./workload-rows.ts";

const CONNECT_AGAIN_MS = 2_000;
const LOOK_EVERY_MS = 1_000;
// Changes are shown within a second.
const LONGEST_PAUSE_MS = 500;
const PAUSE_PER_DRAW = 4;

/** The live data of the page, kept by one connection to its server. */
export class LiveData implements Heard {
  hostName = "";
  members: readonly MemberRow[] | undefined;
  readonly pods: Map<string, PodRow> = new Map();
  workloads: PodWorkloads = new PodWorkloads();
  whole: WholeRows = { rows: [], notRead: [] };
  hidden: HiddenFromUser = { members: false };
  /** All pods have arrived once. */
  isComplete = false;
  problem: string | undefined;
  isConnected = false;
  heardAt: number | undefined;
  startedAt: number = Date.now();
  /** Nothing was heard of the host for so long that all that is shown may be old. */
  isOld = false;
  /** Who is signed in. Undefined until the server says so. */
  session: SignedIn | undefined;
  /** How to sign in again, if the server asks for that. */
  signedOut: SignedIn["by"] | undefined;
  /** Grows with each change of the pods. */
  version = 0;
  readonly rates: Rates = new Rates();
  readonly #readers = new Set<() => void>();
  /** A draw is due. */
  #isAwaited = false;
  /** No draw before then; as `performance.now()`. */
  #drawAt = 0;

  start(): void {
    this.startedAt = Date.now();
    // Nothing comes that could tell of silence.
    setInterval(() => {
      const isSilent = isOld(this, Date.now());
      if (isSilent !== this.isOld) this.#change(() => (this.isOld = isSilent));
    }, LOOK_EVERY_MS);
    this.#connect();
  }

  #connect(): void {
    const source = new EventSource("/api/live");
    source.onopen = () => {
      this.#change(() => (this.isConnected = true));
      void this.#readSession();
    };
    source.onerror = () => {
      this.#change(() => (this.isConnected = false));
      // The browser connects again by itself, but not after an answer such as 401.
      if (source.readyState === EventSource.CLOSED) void this.#startAgain();
    };
    source.onmessage = ({ data }) => this.#change(() => this.#take(JSON.parse(String(data)) as LiveMessage));
  }

  async #startAgain(): Promise<void> {
    await this.#readSession();
    if (this.signedOut === undefined) setTimeout(() => this.#connect(), CONNECT_AGAIN_MS);
  }

  /** Signs in with a token, to see all or one namespace. Resolves to the reason if that is refused. */
  async signIn(token: string, namespace: string): Promise<string | undefined> {
    const response = await fetch("/api/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, namespace }),
    });
    if (!response.ok) return refusalOf(response);
    location.reload();
    return undefined;
  }

  async signOut(): Promise<void> {
    await fetch("/api/session", { method: "DELETE" });
    location.reload();
  }

  async #readSession(): Promise<void> {
    const response = await fetch("/api/session").catch(() => undefined);
    if (response === undefined) return;
    const session = response.ok ? ((await response.json()) as SignedIn) : undefined;
    const takesTokens = response.headers.get("www-authenticate") === "Bearer";
    this.#change(() => {
      this.session = session;
      this.signedOut = response.status !== 401 ? undefined : takesTokens ? "token" : "address";
    });
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
      case "whole":
        this.whole = message;
        break;
      case "hidden":
        this.hidden = message;
        if (message.members) this.members = undefined;
        break;
      case "problem":
        this.problem = message.message;
        break;
      case "heard":
        if (message.silentMs !== undefined) this.heardAt = Date.now() - message.silentMs;
        break;
      case "complete":
        this.isComplete = true;
        this.rates.begin(Date.now());
        break;
      case "pods":
        // A list after a cut connection tells of no changes.
        if (message.isFirst) {
          this.pods.clear();
          this.workloads = new PodWorkloads();
          this.isComplete = false;
        }
        for (const row of message.rows) this.#set(row.uid, row);
        for (const uid of message.gone) this.#set(uid, undefined);
        this.version += 1;
    }
  }

  #set(uid: string, row: PodRow | undefined): void {
    const before = this.pods.get(uid);
    if (this.isComplete) this.rates.observe(before, row, Date.now());
    this.workloads.set(before, row);
    if (row === undefined) this.pods.delete(uid);
    else this.pods.set(uid, row);
  }

  /** Draws once per frame, however many messages come, and leaves time for its user between two views that take long to draw. */
  #change(change: () => void): void {
    change();
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    setTimeout(() => requestAnimationFrame(() => this.#draw()), this.#drawAt - performance.now());
  }

  #draw(): void {
    const begin = performance.now();
    this.#isAwaited = false;
    for (const reader of this.#readers) reader();
    // Components are drawn in a microtask.
    setTimeout(() => {
      const end = performance.now();
      this.#drawAt = end + Math.min(LONGEST_PAUSE_MS, (end - begin) * PAUSE_PER_DRAW);
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
