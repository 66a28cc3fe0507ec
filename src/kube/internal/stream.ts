import { AbortCallbacks } from "../abort.ts";
import type { StreamAnswer, StreamOptions } from "../client.ts";
import { Slots } from "../limits.ts";
import { startTimer } from "../timer.ts";
import type { ApiRequest } from "./request-sender.ts";
import { withSearch } from "./resource-paths.ts";
import { StreamHandler, type StreamOutcome } from "./stream-handler.ts";
import type { Transport } from "./transport.ts";

/** The subresource to read as a stream. */
export type StreamedSubresource = Pick<ApiRequest, "plural" | "namespace" | "name" | "path"> & StreamOptions;

// A thousand concurrent handshakes would all finish late, and delay other requests' connections.
const CONNECTING_AT_ONCE = 16;

/** Opens streams to one API server, a few connections at a time. */
export class StreamOpener {
  readonly #transport: Transport;
  readonly #connecting = new Slots(CONNECTING_AT_ONCE);
  readonly #aborts = new AbortCallbacks();

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns the response as a stream; see `ClusterClient.stream`. */
  async open(target: StreamedSubresource): Promise<StreamAnswer> {
    const transport = this.#transport;
    const { plural, namespace, name, path, query, signal, timeoutMs } = target;
    const request: ApiRequest = {
      verb: "get",
      method: "GET",
      plural,
      namespace,
      name,
      path: withSearch(path, query),
      signal,
    };
    const endsAt = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    return transport.open(request, async (identity) => {
      const outcome = await this.#send(request, endsAt, (handler) =>
        transport.sender.stream(request, identity, handler),
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
      const onAbort = (): void => handler.end("aborted", new Error("the caller gave up", { cause: signal?.reason }));
      const late = (): void => handler.end("late", new Error("no answer in time"));
      const timer = endsAt === undefined ? undefined : startTimer(endsAt - performance.now(), late);
      const begin = (): void => {
        holding = true;
        dispatch(handler);
      };
      const waiter = { namespace, granted: begin };
      if (signal?.aborted === true) {
        onAbort();
        return;
      }
      forget = this.#aborts.add(signal, onAbort);
      if (this.#connecting.take(waiter)) begin();
    });
  }
}
