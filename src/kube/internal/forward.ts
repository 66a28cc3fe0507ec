import { AbortCallbacks } from "../abort.ts";
import type { ForwardedRequest, ForwardedResponse, UpgradeAnswer } from "../client.ts";
import type { RequestIdentity } from "../credentials.ts";
import { forwardedHeaders, withoutHopByHop } from "./forward-headers.ts";
import type { ApiRequest } from "./request-sender.ts";
import { StreamHandler, type StreamOutcome } from "./stream-handler.ts";
import type { Transport } from "./transport.ts";
import { UpgradeHandler, type UpgradeOutcome } from "./upgrade.ts";

type UpgradeRequest = Omit<ForwardedRequest, "body">;

const aborts = new AbortCallbacks();

/** Forwards a request; see `Forwarder.forward`. */
export async function forward(transport: Transport, request: ForwardedRequest): Promise<ForwardedResponse> {
  const { signal, body = null } = request;
  const outcome = await send<StreamOutcome>(transport, request, (headers, identity, settle) => {
    const isFinal = (status: number): boolean => status >= 200;
    const handler = new StreamHandler(() => {}, settle, isFinal);
    const onAbort = (): void => handler.end("aborted", gaveUp(signal));
    const forget = aborts.add(signal, onAbort);
    if (signal.aborted) onAbort();
    else transport.sender.forward({ ...request, headers, body }, identity, handler);
    return (ended) => {
      // An open stream keeps its abort callback until it ends.
      if ("body" in ended) ended.body.once("close", forget);
      else forget();
    };
  });
  if ("body" in outcome) {
    const { status, rawHeaders, body: answer } = outcome;
    return { status, headers: withoutHopByHop(rawHeaders), body: answer };
  }
  const cause = outcome.failure?.cause ?? new Error("the response has no body");
  body?.destroy(cause);
  throw transport.failure(outcome.failure ?? { sent: true, by: "cut", cause }, subjectOf(request));
}

/** Forwards an upgrade; see `Forwarder.upgrade`. */
export async function forwardUpgrade(
  transport: Transport,
  request: UpgradeRequest,
  protocol: string,
): Promise<UpgradeAnswer> {
  const { signal } = request;
  const outcome = await send<UpgradeOutcome>(transport, request, (headers, identity, settle) => {
    const handler = new UpgradeHandler(transport.arriving, settle);
    const onAbort = (): void => handler.end("aborted", gaveUp(signal));
    const forget = aborts.add(signal, onAbort);
    if (signal.aborted) onAbort();
    else transport.sender.forward({ ...request, headers, body: null, upgrade: protocol }, identity, handler);
    return forget;
  });
  if ("socket" in outcome) {
    transport.sender.keep(outcome.socket);
    return outcome;
  }
  if (outcome.answer !== undefined) return outcome.answer;
  // An upgrade that was not answered has no effect that lasts.
  throw transport.failure(outcome.failure, subjectOf(request), true);
}

/** Sends with `dispatch`, which returns the clean-up once there is an outcome. */
async function send<Ended>(
  transport: Transport,
  request: UpgradeRequest,
  dispatch: (
    headers: string[],
    identity: RequestIdentity,
    settle: (outcome: Ended) => void,
  ) => (outcome: Ended) => void,
): Promise<Ended> {
  const subject = subjectOf(request);
  const identity = await transport.identity(subject);
  const headers = headersOf(transport, request, identity, subject);
  const settled = Promise.withResolvers<Ended>();
  const cleanUp = dispatch(headers, identity, settled.resolve);
  const outcome = await settled.promise;
  cleanUp(outcome);
  return outcome;
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

function gaveUp(signal: AbortSignal): Error {
  return new Error("the caller gave up", { cause: signal.reason });
}

const VERBS = { GET: "get", HEAD: "get", POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" } as const;

/** Returns what errors say of the request. As in `ClusterClient.raw`, the path is the name. */
function subjectOf({ method, path }: UpgradeRequest): ApiRequest {
  return { verb: VERBS[method], method: method === "HEAD" ? "GET" : method, plural: "raw", name: path, path };
}
