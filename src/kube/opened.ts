import type { Identity } from "./credentials.ts";
import type { Answer, Outcome } from "./exchange.ts";
import type { Transport } from "./transport.ts";
import type { WireRequest } from "./wire.ts";

/**
 * Opens a stream or an upgraded connection with `attempt`. Retries once with new credentials after a 401. Returns what was
 * opened, or the error response. Rejects with KubeError when there is no response.
 */
export async function opened<T>(
  transport: Transport,
  request: WireRequest,
  attempt: (identity: Identity) => Promise<Outcome | { readonly opened: T }>,
): Promise<T | Answer> {
  for (let refreshed = false; ; refreshed = true) {
    const outcome = await attempt(await transport.identity(request));
    if ("opened" in outcome) return outcome.opened;
    const { answer, failure } = outcome;
    if (answer === undefined) throw transport.failure(failure, request, true);
    if (answer.status !== 401 || refreshed) return answer;
    transport.refreshCredentials();
  }
}
