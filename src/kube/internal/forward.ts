import { onAbort } from "../abort.ts";
import type { ForwardedRequest, ForwardedResponse, UpgradeAnswer } from "../client.ts";
import type { RequestIdentity } from "../credentials.ts";
import { forwardedHeaders, withoutHopByHop } from "./forward-headers.ts";
import type { ApiRequest } from "./request-sender.ts";
import { type StreamBegun, StreamHandler, type StreamOutcome } from "./stream-handler.ts";
import { gaveUp, type Transport } from "./transport.ts";
import { UpgradeHandler, type UpgradeOutcome } from "./upgrade.ts";

type UpgradeRequest = Omit<ForwardedRequest, "body">;

/** Forwards a request; see `Forwarder.forward`. */
export async function forward(transport: Transport, request: ForwardedRequest): Promise<ForwardedResponse> {
  const isFinal = (status: number): boolean => status >= 200;
  try {
    const outcome = await send<StreamOutcome>(
      transport,
      request,
      (settle) => new StreamHandler(() => {}, settle, isFinal),
    );
    if (isBegun(outcome)) {
      const { status, rawHeaders, body } = outcome;
      return { status, headers: withoutHopByHop(rawHeaders), body };
    }
    const cut = { sent: true, by: "cut", cause: new Error("the response has no body") } as const;
    throw transport.failure(outcome.failure ?? cut, subjectOf(request));
  } catch (error) {
    // Also where nothing was sent: whoever writes the body would wait for its reader.
    request.body?.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}

/** Forwards an upgrade; see `Forwarder.upgrade`. */
export async function forwardUpgrade(
  transport: Transport,
  request: UpgradeRequest,
  protocol: string,
): Promise<UpgradeAnswer> {
  const outcome = await send<UpgradeOutcome>(
    transport,
    { ...request, upgrade: protocol },
    (settle) => new UpgradeHandler(transport.arriving, settle),
  );
  if ("socket" in outcome) {
    transport.sender.keep(outcome.socket);
    return outcome;
  }
  if (outcome.answer !== undefined) return outcome.answer;
  // An upgrade that was not answered has no effect that lasts.
  throw transport.failure(outcome.failure, subjectOf(request), true);
}

/** Resolves to the outcome that the handler settles with. */
async function send<Ended extends object>(
  transport: Transport,
  request: ForwardedRequest & { readonly upgrade?: string },
  handlerOf: (settle: (outcome: Ended) => void) => StreamHandler | UpgradeHandler,
): Promise<Ended> {
  const { signal, body = null } = request;
  const subject = subjectOf(request);
  const identity = await transport.identity(subject);
  const headers = headersOf(transport, request, identity, subject);
  const settled = Promise.withResolvers<Ended>();
  const handler = handlerOf(settled.resolve);
  const giveUp = (): void => handler.end("aborted", gaveUp(signal));
  const forget = onAbort(signal, giveUp);
  if (signal.aborted) giveUp();
  else transport.sender.forward({ ...request, headers, body }, identity, handler);
  const outcome = await settled.promise;
  // An open stream keeps its abort callback until it ends.
  if (isBegun(outcome)) outcome.body.once("close", forget);
  else forget();
  return outcome;
}

function isBegun(outcome: object): outcome is StreamBegun {
  return "body" in outcome;
}

function headersOf(
  transport: Transport,
  { headers, impersonation }: UpgradeRequest,
  { authorization }: RequestIdentity,
  subject: ApiRequest,
): string[] {
  try {
    return forwardedHeaders(headers, impersonation, authorization);
  } catch (cause) {
    throw transport.error("NotSent", cause instanceof Error ? cause.message : String(cause), subject, cause);
  }
}

const VERBS = { GET: "get", HEAD: "get", POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;

/** Returns what errors say of the request. As in `ClusterClient.raw`, the path is the name. */
function subjectOf({ method, path }: UpgradeRequest): ApiRequest {
  return { verb: VERBS[method], method: method === "HEAD" ? "GET" : method, plural: "raw", name: path, path };
}
