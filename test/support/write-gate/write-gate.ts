import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request } from "node:https";
import { buffer } from "node:stream/consumers";
import { issueAuthority, issueServing } from "../../../src/certificates/issue.ts";
import { freePort } from "../clusters/ports.ts";

/** A write on its way to an API server. */
export interface Write {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly body: string;
}

/** The fate of a write. */
export interface Trap {
  /** The first write that this accepts is caught, and no other. */
  readonly catches: (write: Write) => boolean;
  /**
   * `before`: the API server never sees it; `after`: it does it, and its answer is never delivered; `unseen`: its answer
   * is delivered, and no watch tells of it or of anything later until the trap is taken away; `lost`: the same, and its
   * answer is never delivered; `late`: it is forwarded once `onCaught` has resolved, and answered; `refused`: the API server
   * never sees it, and it is answered with `status`.
   */
  readonly when: "before" | "after" | "unseen" | "lost" | "late" | "refused";
  /** Status code of a refusal; default 500. */
  readonly status?: number;
  /** Breaks something; the write's connection is held until this resolves. */
  readonly onCaught: () => Promise<void>;
}

/** The fate of reads, until it is taken away. */
export interface ReadTrap {
  /** Accepts a list's or watch's path without the query, such as `/api/v1/pods`. */
  readonly catches: (path: string) => boolean;
  /** Status code that lists are refused with, or they are held up. */
  readonly lists: number | "held";
  /** Open watches end, and new ones are answered 410, so that all is listed. Default: they go on. */
  readonly cutsWatches?: true;
}

/** An HTTPS proxy in front of one API server that forwards everything, watches too, but for the writes in its traps. */
export interface WriteGate {
  readonly server: string;
  /** PEM of the gate's own authority. */
  readonly caData: string;
  /** Sets the trap of this name, in place of an earlier one. */
  set(name: string, trap: Trap): void;
  /** Sets the trap for reads, in place of an earlier one. */
  setReads(trap: ReadTrap): void;
  /** Takes all traps away, answers lists that one has held up, and ends watches that one has held back. */
  release(): void;
  close(): Promise<void>;
}

const LIFETIME_MS = 24 * 60 * 60_000;
const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
// Hop-by-hop headers (RFC 9110, 7.6.1): node writes its own.
const HOP_BY_HOP = ["connection", "keep-alive", "transfer-encoding", "host"];

/** Starts a gate on a loopback port in front of an API server. */
export async function startWriteGate(target: { readonly server: string; readonly caData: string }): Promise<WriteGate> {
  const options = { now: Date.now(), lifetimeMs: LIFETIME_MS };
  const authority = await issueAuthority("write-gate", options);
  const certificate = await issueServing(authority, ["127.0.0.1"], options);
  const agent = new Agent({ keepAlive: true, ca: target.caData });
  const watches = new WatchValve();
  const traps = new Map<string, Trap>();
  let reads: (ReadTrap & { readonly released: PromiseWithResolvers<void> }) | undefined;

  const forward = (incoming: IncomingMessage, answer: ServerResponse, body?: Buffer): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const { method, headers, url = "/" } = incoming;
      const outgoing = request(new URL(url, target.server), { method, agent, headers: endToEnd(headers) }, resolve);
      outgoing.on("error", reject);
      answer.on("close", () => outgoing.destroy());
      outgoing.end(body);
    });

  const handle = async (incoming: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const { method = "GET", url = "/" } = incoming;
    if (READS.has(method)) {
      const isWatch = url.includes("watch=true");
      if (reads?.catches(pathOf(url)) === true) {
        if (isWatch && reads.cutsWatches === true) return refuse(answer, 410);
        if (!isWatch && typeof reads.lists === "number") return refuse(answer, reads.lists);
        if (!isWatch) await reads.released.promise;
      }
      const upstream = await forward(incoming, answer);
      deliver(upstream, answer);
      if (isWatch) watches.add(pathOf(url), upstream, answer);
      return;
    }
    const body = await buffer(incoming);
    const write = { method, path: pathOf(url), body: body.toString("utf8") };
    const caught = [...traps].find(([, { catches }]) => catches(write));
    if (caught === undefined) return deliver(await forward(incoming, answer, body), answer);
    const [name, { when, status = 500, onCaught }] = caught;
    traps.delete(name);
    if (when === "late") {
      await onCaught();
      return deliver(await forward(incoming, answer, body), answer);
    }
    if (when === "refused") {
      await onCaught();
      return refuse(answer, status);
    }
    if (when === "unseen" || when === "lost") {
      watches.close();
      const upstream = await forward(incoming, answer, body);
      const text = await buffer(upstream);
      await onCaught();
      if (when === "lost") {
        answer.destroy();
        return;
      }
      answer.writeHead(upstream.statusCode ?? 502, endToEnd(upstream.headers)).end(text);
      return;
    }
    if (when === "after") await buffer(await forward(incoming, answer, body));
    await onCaught();
    answer.destroy();
  };

  const server = createServer({ ...certificate }, (incoming, answer) => {
    // Either side may go at any moment: that is what the gate is for.
    handle(incoming, answer).catch(() => answer.destroy());
  });
  // The writer decides how long it keeps a connection; one closed under a request would be a fault of its own.
  server.keepAliveTimeout = 0;
  const port = await freePort();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    server: `https://127.0.0.1:${port}`,
    caData: authority.cert,
    set: (name, trap) => traps.set(name, trap),
    setReads: (trap) => {
      reads?.released.resolve();
      reads = { ...trap, released: Promise.withResolvers<void>() };
      if (trap.cutsWatches === true) watches.cut(trap.catches);
    },
    release: () => {
      watches.open();
      traps.clear();
      reads?.released.resolve();
      reads = undefined;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        agent.destroy();
      }),
  };
}

/** Holds back what open watches would tell. */
class WatchValve {
  readonly #watches = new Map<ServerResponse, { readonly path: string; readonly upstream: IncomingMessage }>();
  #closed = false;

  add(path: string, upstream: IncomingMessage, answer: ServerResponse): void {
    this.#watches.set(answer, { path, upstream });
    answer.on("close", () => this.#watches.delete(answer));
    if (this.#closed) upstream.unpipe(answer);
  }

  close(): void {
    this.#closed = true;
    for (const [answer, { upstream }] of this.#watches) upstream.unpipe(answer);
  }

  cut(isOf: (path: string) => boolean): void {
    for (const [answer, { path }] of this.#watches) if (isOf(path)) answer.destroy();
  }

  open(): void {
    if (!this.#closed) return;
    this.#closed = false;
    for (const answer of this.#watches.keys()) answer.destroy();
  }
}

function pathOf(url: string): string {
  return url.split("?", 1)[0] ?? url;
}

function refuse(answer: ServerResponse, status: number): void {
  const reason = status === 409 ? { reason: "Conflict" } : {};
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", message: "refused", ...reason, code: status };
  answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = { ...headers };
  for (const name of HOP_BY_HOP) delete kept[name];
  return kept;
}

function deliver(upstream: IncomingMessage, answer: ServerResponse): void {
  answer.writeHead(upstream.statusCode ?? 502, endToEnd(upstream.headers));
  // A watch that has nothing to tell yet has been accepted all the same.
  answer.flushHeaders();
  upstream.on("error", () => answer.destroy());
  answer.on("close", () => upstream.destroy());
  upstream.pipe(answer);
}
