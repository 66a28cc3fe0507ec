import type { Identity } from "./credentials.ts";
import type { Answer, Outcome } from "./exchange.ts";
import type { Transport } from "./transport.ts";
import type { WireRequest } from "./wire.ts";

/**
 * What `attempt` opens or is answered. It is made once again with new credentials when the server has refused the first ones,
 * which it does before anything else. Rejects with KubeError when there is no answer.
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
