import { requestClient } from "../../certificates/issue.ts";
import { renewalReason } from "../../certificates/validity.ts";
import type { ClusterClient, PathUpgrades } from "../../kube/client.ts";
import type { ClusterCredentials, RequestIdentity } from "../../kube/credentials.ts";
import type { Environment } from "../../kube/environment-proxy.ts";
import { environmentProxy } from "../../kube/environment-proxy.ts";
import { createClusterClient } from "../../kube/http-client.ts";
import { CERTIFICATE_PATH, CLUSTER_HEADER, certificateAnswer } from "../../tunnel/messages.ts";
import type { AgentState } from "./state.ts";

export function hubClient(state: AgentState, env: Environment, userAgent: string): ClusterClient & PathUpgrades {
  const server = `https://${state.current.hub}`;
  const proxy = environmentProxy(server, env);
  const credentials: ClusterCredentials = {
    server,
    source: "the agent's Secret",
    insecureSkipTlsVerify: false,
    ...(proxy === undefined ? {} : { environmentProxyUrl: proxy }),
    identity: () => identityOf(state),
    refresh: () => {},
  };
  return createClusterClient({ cluster: "hub", credentials, userAgent });
}

function identityOf({ current: { cert, key, authorities, token, cluster } }: AgentState): RequestIdentity {
  if (cert !== undefined && key !== undefined) return { ca: authorities, cert, key };
  return {
    ca: authorities,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    headers: { [CLUSTER_HEADER]: cluster },
  };
}

/** Gets the agent's first certificate, or the next one when due. Rejects with KubeError, with the hub's reason for a refusal. */
export async function ensureCertificate(
  state: AgentState,
  hub: ClusterClient,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<void> {
  const { cert, request: asked, requestKey: askedWith } = state.current;
  if (cert !== undefined && renewalReason(cert, { now }) === undefined) return;
  const { request, key } =
    asked === undefined || askedWith === undefined ? await requestClient() : { request: asked, key: askedWith };
  // Stored first: the token is bound to this key, and the answer may be lost.
  if (asked !== request) await state.store({ request, requestKey: key }, signal);
  const body = { request };
  const answer = await hub.raw({ method: "POST", path: CERTIFICATE_PATH, body, signal });
  const { certificate, authorities } = certificateAnswer.parse(answer);
  await state.store({ cert: certificate, key, authorities, request: "", requestKey: "" }, signal);
}
