import type { Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION } from "../../api/keys.ts";
import type { Secret, Stored } from "../../api/kubernetes.ts";
import { withToken } from "../../controllers/member-token/claims.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Failure } from "../failure.ts";
import { credentialsSecretName } from "../member/names.ts";
import type { Connection } from "../session.ts";

const KEY = "kubeconfig";

/** What a member that joins again has on the host. */
export interface StoredCredentials {
  readonly secret: Stored<Secret> | undefined;
  /** Why they must be made anew, in words for people; undefined when they need not. */
  readonly problem: string | undefined;
  /** The same kubeconfig with another token; undefined when there is none to go on with. */
  readonly withToken: ((token: string) => string) | undefined;
}

/** Looks whether the host's credentials for a member still do. Those that Legation did not make are the operator's own. */
export async function storedCredentials(
  cluster: Stored<Cluster>,
  { memberServer }: { readonly memberServer?: string | undefined },
  {
    host,
    connectText,
    signal,
  }: {
    readonly host: ClusterClient;
    readonly connectText: (kubeconfig: string, as: string) => Promise<Connection>;
    readonly signal: AbortSignal;
  },
): Promise<StoredCredentials> {
  const { name } = cluster.metadata;
  const { name: secretName, key = KEY } = cluster.spec.credentialsSecret;
  const secret = await host.find(secrets, { namespace: SYSTEM_NAMESPACE, name: secretName }, { signal });
  const isOurs = secretName === credentialsSecretName(name) && key === KEY;
  const expires = secret?.metadata.annotations?.[TOKEN_EXPIRES_ANNOTATION];
  if (!isOurs || (secret !== undefined && expires === undefined)) {
    if (memberServer !== undefined) throw ownCredentials(name, secretName);
    return { secret, problem: undefined, withToken: undefined };
  }
  const encoded = secret?.data?.[KEY];
  if (encoded === undefined) return { secret, problem: `Secret ${secretName} is missing`, withToken: undefined };
  const text = Buffer.from(encoded, "base64").toString("utf8");
  if (memberServer !== undefined) {
    return { secret, problem: `the controller is to reach it at ${memberServer}`, withToken: undefined };
  }
  const renewed = (token: string): string => withToken(text, token);
  if (Date.parse(expires ?? "") <= realClock.wall())
    return { secret, problem: "its token has ended", withToken: renewed };
  try {
    const { client } = await connectText(text, name);
    await client.raw({ method: "GET", path: "/api/v1/pods?limit=1", signal });
  } catch (error) {
    if (isKubeError(error, "BadCredentials")) return { secret, problem: error.detail, withToken: undefined };
    if (isKubeError(error, "Unauthorized")) return { secret, problem: "its token is refused", withToken: renewed };
    // The controller may reach an address that this machine does not; and rights take a moment.
    if (!isKubeError(error, "NotSent", "AnswerLost", "ServerError", "Forbidden")) throw error;
  }
  return { secret, problem: undefined, withToken: undefined };
}

function ownCredentials(cluster: string, secret: string): Failure {
  return new Failure("refused", {
    object: `Cluster ${cluster}`,
    problem: `has credentials of your own, in Secret ${SYSTEM_NAMESPACE}/${secret}`,
    remedy: "leave out --member-server, and write the address into that Secret's kubeconfig",
  });
}
