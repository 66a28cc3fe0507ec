import { onAbort } from "../abort.ts";
import type { StreamAnswer, StreamOptions } from "../client.ts";
import { Slots } from "../limits.ts";
import { startTimer } from "../timer.ts";
import type { ApiRequest } from "./request-sender.ts";
import { withSearch } from "./resource-paths.ts";
import { StreamHandler, type StreamOutcome } from "./stream-handler.ts";
import { gaveUp, type Transport } from "./transport.ts";

// A thousand concurrent handshakes would all finish late, and delay other requests' connections.
const CONNECTING_AT_ONCE = 16;

/** Opens streams to one API server, a few connections at a time. */
export class StreamOpener {
  readonly #transport: Transport;
  readonly #connecting = new Slots(CONNECTING_AT_ONCE);

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns the response as a stream; see `ClusterClient.stream`. */
  async open(
    target: Pick<ApiRequest, "plural" | "namespace" | "name" | "path"> & StreamOptions,
  ): Promise<StreamAnswer> {
    const transport = this.#transport;
    const { plural, namespace, name, path, query, signal, timeoutMs } = target;
    const request: ApiRequest = {
      verb: "get",
      method: "GET",
      plural,
      namespace,
      name,
      path: withSearch(path, query),
      // Logs are plain text; errors are JSON.
      accept: "*/*",
      signal,
    };
    const endsAt = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    return transport.open(request, async (identity) => {
      const outcome = await this.#send(request, endsAt, (handler) =>
        transport.sender.send("watches", request, identity, handler),
      );
      return "body" in outcome ? { opened: outcome } : outcome;
    });
  }

  async #send(
    { signal, namespace = "" }: ApiRequest,
    endsAt: number | undefined,
    dispatch: (handler: StreamHandler) => void,
  ): Promise<StreamOutcome> {
    return new Promise((resolve) => {
      let holding = false;
      let forget = (): void => {};
      const release = (): void => {
        if (holding) this.#connecting.release(waiter);
        else this.#connecting.leave(waiter);
        holding = false;
      };
      const handler = new StreamHandler(release, (outcome) => {
        clearTimeout(timer);
        // An open stream keeps its abort callback until it ends.
        if (!("body" in outcome)) forget();
        else outcome.body.once("close", () => forget());
        resolve(outcome);
      });
      const giveUp = (): void => handler.end("aborted", gaveUp(signal));
      const late = (): void => handler.end("late", new Error("no answer in time"));
      const timer = endsAt === undefined ? undefined : startTimer(endsAt - performance.now(), late);
      const begin = (): void => {
        holding = true;
        dispatch(handler);
      };
      const waiter = { namespace, granted: begin };
      if (signal?.aborted === true) {
        giveUp();
        return;
      }
      forget = onAbort(signal, giveUp);
      if (this.#connecting.take(waiter)) begin();
    });
  }
}
