import type { IncomingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import { onAbort } from "../abort.ts";
import type { UpgradeAnswer, UpgradeOptions } from "../client.ts";
import type { RequestIdentity } from "../credentials.ts";
import type { ByteBudget } from "../limits.ts";
import { startTimer } from "../timer.ts";
import { type RequestEnd, RequestHandler } from "./request-handler.ts";
import type { ApiRequest } from "./request-sender.ts";
import { withSearch } from "./resource-paths.ts";
import { gaveUp, type Transport } from "./transport.ts";

type UpgradeTarget = Pick<ApiRequest, "plural" | "namespace" | "name" | "path"> & UpgradeOptions;

export type UpgradeOutcome = RequestEnd | { readonly socket: Duplex; readonly headers: IncomingHttpHeaders };

/** A request that ends with an upgraded connection or an ordinary response. */
export class UpgradeHandler extends RequestHandler {
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
  const request: ApiRequest = {
    verb: method === "GET" ? "get" : "create",
    method,
    plural,
    namespace,
    name,
    path: withSearch(path, query),
    // The stream is not JSON, and API servers reject a request that does not accept their media type.
    accept: "*/*",
    signal,
  };
  const endsAt = performance.now() + timeoutMs;
  return transport.open(request, async (identity) => {
    if (signal?.aborted === true) throw transport.error("Aborted", "the caller gave up", request, signal.reason);
    const outcome = await send(transport, request, identity, target, endsAt - performance.now());
    if (!("socket" in outcome)) return outcome;
    transport.sender.keep(outcome.socket);
    return { opened: outcome };
  });
}

function send(
  transport: Transport,
  request: ApiRequest,
  identity: RequestIdentity,
  target: UpgradeTarget,
  leftMs: number,
): Promise<UpgradeOutcome> {
  const { signal } = request;
  return new Promise((resolve) => {
    const attempt = new UpgradeHandler(transport.arriving, (outcome) => {
      clearTimeout(timer);
      forget();
      resolve(outcome);
    });
    const late = new Error(`no answer within ${Math.round(target.timeoutMs ?? transport.timeoutMs)} ms`);
    const timer = startTimer(leftMs, () => attempt.end("late", late));
    const forget = onAbort(signal, () => attempt.end("aborted", gaveUp(signal)));
    transport.sender.send("upgrades", request, identity, attempt, target);
  });
}
