import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import { AbortCallbacks } from "./abort-callbacks.ts";
import type { UpgradeAnswer, UpgradeOptions } from "./client.ts";
import type { Identity } from "./credentials.ts";
import { Exchange, type Outcome } from "./exchange.ts";
import type { ByteBudget } from "./limits.ts";
import { opened } from "./opened.ts";
import { withSearch } from "./paths.ts";
import type { Transport } from "./transport.ts";
import type { WireRequest } from "./wire.ts";

/** The subresource whose connection is upgraded. */
export type UpgradeTarget = Pick<WireRequest, "plural" | "namespace" | "name" | "path"> & UpgradeOptions;

type UpgradeOutcome = Outcome | { readonly socket: Duplex; readonly headers: IncomingHttpHeaders };

const aborts = new AbortCallbacks();

/** An exchange that ends with an upgraded connection or an ordinary response. */
class UpgradeExchange extends Exchange {
  readonly #upgraded: (headers: IncomingHttpHeaders, socket: Duplex) => void;

  constructor(budget: ByteBudget, settle: (outcome: UpgradeOutcome) => void) {
    super(() => true, budget, settle);
    this.#upgraded = (headers, socket) => settle({ headers, socket });
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _status: number,
    headers: IncomingHttpHeaders,
    socket: Duplex,
  ): void {
    // An error before the owner takes over, in a later turn of the event loop, must not end the process.
    socket.on("error", () => {});
    this.#upgraded(headers, socket);
  }
}

/** Requests an upgrade; see `ClusterClient.upgrade`. */
export async function upgrade(transport: Transport, target: UpgradeTarget): Promise<UpgradeAnswer> {
  const { plural, namespace, name, path, method, query, signal, timeoutMs = transport.timeoutMs } = target;
  const request: WireRequest = {
    verb: method === "GET" ? "get" : "create",
    method,
    plural,
    namespace,
    name,
    path: withSearch(path, query),
    signal,
  };
  const endsAt = performance.now() + timeoutMs;
  return opened(transport, request, async (identity) => {
    if (signal?.aborted === true) throw transport.error("Aborted", "the caller gave up", request, signal.reason);
    const outcome = await exchange(transport, request, identity, target, endsAt - performance.now());
    if (!("socket" in outcome)) return outcome;
    transport.wire.keep(outcome.socket);
    return { opened: outcome };
  });
}

function exchange(
  transport: Transport,
  request: WireRequest,
  identity: Identity,
  target: UpgradeTarget,
  leftMs: number,
): Promise<UpgradeOutcome> {
  return new Promise((resolve) => {
    const onAbort = (): void =>
      attempt.end("aborted", new Error("the caller gave up", { cause: request.signal?.reason }));
    const attempt = new UpgradeExchange(transport.arriving, (outcome) => {
      clearTimeout(timer);
      forget();
      resolve(outcome);
    });
    const late = new Error(`no answer within ${Math.round(target.timeoutMs ?? transport.timeoutMs)} ms`);
    const timer = setTimeout(() => attempt.end("late", late), leftMs);
    const forget = aborts.add(request.signal, onAbort);
    transport.wire.upgrade(request, identity, target, attempt);
  });
}
