import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION } from "../../api/keys.ts";
import { type Secret, type Stored, secretText } from "../../api/kubernetes.ts";
import { tokenClaims, withToken } from "../../controllers/member-token/claims.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Failure } from "../failure.ts";
import { whyForeign } from "../member/credentials.ts";
import { credentialsSecretName, hostAccountName } from "../member/names.ts";
import type { Connection } from "../session.ts";
import { isSameServer } from "./kubeconfig.ts";
import type { ForeignSecret } from "./steps.ts";

/** The credentials that the host holds for a member that joins again. */
export interface StoredCredentials {
  readonly secret: Stored<Secret> | undefined;
  /** Why they must be made anew, in words for people; undefined when they need not. */
  readonly problem: string | undefined;
  /** The same kubeconfig with another token; undefined when there is none to go on with. */
  readonly withToken: ((token: string) => string) | undefined;
  /** The credentials do not lead to the member, so there is no going back to them. */
  readonly useless: boolean;
  /** Where they are, when somebody else made the Secret: no more than the token is replaced there. */
  readonly foreign?: ForeignSecret;
}

const USABLE = { problem: undefined, withToken: undefined, useless: false } as const;

/**
 * Looks whether the host's credentials for a member still do. Those that Legation did not make are the operator's own, but for
 * a token of the host's account, which Legation renews wherever it is.
 */
export async function storedCredentials(
  cluster: Stored<Cluster>,
  {
    hostId,
    memberServer,
    isNewAccount,
  }: {
    readonly hostId: string;
    readonly memberServer: string | undefined;
    /** The service account was made anew: tokens of the one before it are refused, also where this machine cannot try them. */
    readonly isNewAccount: boolean;
  },
  {
    host,
    member,
    connectText,
    signal,
  }: {
    readonly host: ClusterClient;
    /** As the kubeconfig that was given leads to it. */
    readonly member: Connection;
    readonly connectText: (kubeconfig: string, as: string) => Promise<Connection>;
    readonly signal: AbortSignal;
  },
): Promise<StoredCredentials> {
  const { name } = cluster.metadata;
  const { name: secretName, key = CLUSTER_DEFAULTS.credentialsKey } = cluster.spec.credentialsSecret;
  const secret = await host.find(secrets, { namespace: SYSTEM_NAMESPACE, name: secretName }, { signal });
  const isOurs = secretName === credentialsSecretName(name) && key === CLUSTER_DEFAULTS.credentialsKey;
  const expires = secret?.metadata.annotations?.[TOKEN_EXPIRES_ANNOTATION];
  const why = secret === undefined ? undefined : whyForeign(secret, name);
  if (!isOurs || why !== undefined) {
    if (memberServer !== undefined) throw ownCredentials(name, secretName, why);
    const text = secretText(secret, key);
    const problem = await problemOfForeign(text ?? "", { name, hostId, isNewAccount, connectText, signal });
    if (problem === undefined || text === undefined) return { secret, ...USABLE };
    const foreign = { name: secretName, key };
    return { secret, ...replaceable(problem, (token) => withToken(text, token)), foreign };
  }
  const text = secretText(secret, key);
  if (text === undefined) return { secret, ...replaceable(`Secret ${secretName} is missing`) };
  if (memberServer !== undefined) {
    return { secret, ...USABLE, problem: `the controller is to reach it at ${memberServer}` };
  }
  const renewed = (token: string): string => withToken(text, token);
  const useless = uselessToken(Date.parse(expires ?? ""), isNewAccount);
  let stored: Connection | undefined;
  try {
    stored = await connectText(text, name);
    await tryToken(stored, signal);
  } catch (error) {
    if (isKubeError(error, "BadCredentials")) return { secret, ...replaceable(error.detail) };
    if (isKubeError(error, "NotSent") && stored !== undefined) {
      const changed = changedWay(stored, member);
      if (changed !== undefined) return { secret, ...replaceable(`${changed} (${error.detail})`) };
    }
    if (useless !== undefined) return { secret, ...replaceable(useless, renewed) };
    if (isKubeError(error, "Unauthorized")) return { secret, ...replaceable("its token is refused", renewed) };
    // The controller may reach an address that this machine does not; and rights take a moment.
    if (!isKubeError(error, "NotSent", "AnswerLost", "ServerError", "Forbidden")) throw error;
  }
  return { secret, ...(useless === undefined ? USABLE : replaceable(useless, renewed)) };
}

/** Why nobody can use a token, whatever the member says: `endsAt` is epoch ms. */
function uselessToken(endsAt: number, isNewAccount: boolean): string | undefined {
  if (endsAt <= realClock.wall()) return "its token has ended";
  return isNewAccount ? "its service account is a new one" : undefined;
}

/** Asks for what each host may read. Rejects with KubeError. */
async function tryToken({ client }: Connection, signal: AbortSignal): Promise<void> {
  await client.raw({ method: "GET", path: "/api/v1/pods?limit=1", signal });
}

/** Why the token of a kubeconfig that somebody else made must be replaced, when it is the host's account's. */
async function problemOfForeign(
  text: string,
  {
    name,
    hostId,
    isNewAccount,
    connectText,
    signal,
  }: {
    readonly name: string;
    readonly hostId: string;
    readonly isNewAccount: boolean;
    readonly connectText: (kubeconfig: string, as: string) => Promise<Connection>;
    readonly signal: AbortSignal;
  },
): Promise<string | undefined> {
  const claims = tokenClaims(text);
  if (claims?.namespace !== SYSTEM_NAMESPACE || claims.name !== hostAccountName(hostId)) return undefined;
  const useless = uselessToken(claims.expiresAt, isNewAccount);
  if (useless !== undefined) return useless;
  try {
    await tryToken(await connectText(text, name), signal);
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    if (error.code === "Unauthorized") return "its token is refused";
  }
  return undefined;
}

function replaceable(problem: string, renewed?: StoredCredentials["withToken"]): Omit<StoredCredentials, "secret"> {
  return { problem, withToken: renewed, useless: true };
}

/** How the way to the same API server, by a kubeconfig that works, differs from the stored one, which does not work. */
function changedWay(stored: Connection, given: Connection): string | undefined {
  if (!isSameServer(stored.server, given.server)) return undefined;
  const differences = [
    stored.certificateAuthority?.trim() === given.certificateAuthority?.trim() ? [] : ["certificate-authority"],
    stored.skipsTlsVerify === given.skipsTlsVerify ? [] : ["insecure-skip-tls-verify"],
    stored.tlsServerName === given.tlsServerName ? [] : ["tls-server-name"],
    // A missing proxy may be intended: the controller need not take this machine's route.
    stored.proxyUrl === undefined || stored.proxyUrl === given.proxyUrl ? [] : ["proxy-url"],
  ].flat();
  if (differences.length === 0) return undefined;
  return `it does not reach ${stored.server} with a ${differences.join(", ")} other than that of --member-kubeconfig`;
}

function ownCredentials(cluster: string, secret: string, why: string | undefined): Failure {
  return new Failure("refused", {
    object: `Cluster ${cluster}`,
    problem: `has credentials of your own, in Secret ${SYSTEM_NAMESPACE}/${secret}${why === undefined ? "" : ` (${why})`}`,
    remedy: "leave out --member-server, and write the address into that Secret's kubeconfig",
  });
}
