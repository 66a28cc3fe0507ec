import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION } from "../../api/keys.ts";
import { type Secret, type Stored, secretText } from "../../api/kubernetes.ts";
import { tokenClaims, withToken } from "../../controllers/member-token/claims.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { credentialsSecretName, hostAccountName } from "../member/access.ts";
import { whyForeign } from "../member/credentials.ts";
import { Failure } from "../shared/failure.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { type ForeignSecret, tryToken } from "./credentials.ts";
import { isSameServer } from "./wait.ts";

/** A reason to replace a member's stored credentials. */
interface Problem {
  /** The reason in words for people. */
  readonly why: string;
  /** The credentials do not lead to the member, so there is no going back to them. */
  readonly isUseless: boolean;
  /** Builds the stored kubeconfig with another token. Undefined: a new kubeconfig is needed. */
  readonly withToken?: (token: string) => string;
}

/** The credentials that the host holds for a member that joins again. */
export interface StoredCredentials {
  readonly secret: Stored<Secret> | undefined;
  /** Undefined: the credentials work. */
  readonly problem: Problem | undefined;
  /** The Secret, when an operator made it: `join` replaces the token in it and nothing else. */
  readonly foreign?: ForeignSecret;
}

interface StoredContext extends HostContext {
  /** The member, as the operator's kubeconfig leads to it. */
  readonly member: Connection;
  readonly hostId: string;
}

/**
 * Checks the host's credentials for a member. Those in an operator's own Secret stay, except a token of Legation's service
 * account, which `join` renews wherever it is stored.
 */
export async function storedCredentials(
  cluster: Stored<Cluster>,
  wanted: {
    readonly memberServer: string | undefined;
    /** `join` created the service account, so earlier tokens are refused, also where this machine cannot try them. */
    readonly isNewAccount: boolean;
  },
  context: StoredContext,
): Promise<StoredCredentials> {
  const { name } = cluster.metadata;
  const { host, signal } = context;
  const { memberServer, isNewAccount } = wanted;
  const { name: secretName, key = CLUSTER_DEFAULTS.credentialsKey } = cluster.spec.credentialsSecret;
  const secret = await host.find(secrets, { namespace: SYSTEM_NAMESPACE, name: secretName }, { signal });
  const text = secretText(secret, key);
  const why = secret === undefined ? undefined : whyForeign(secret, name);
  if (why !== undefined || secretName !== credentialsSecretName(name) || key !== CLUSTER_DEFAULTS.credentialsKey) {
    if (memberServer !== undefined) throw ownCredentials(name, secretName, why);
    const problem = await problemOfForeign(text ?? "", name, isNewAccount, context);
    return { secret, problem, foreign: { name: secretName, key } };
  }
  if (text === undefined) return { secret, problem: { why: `Secret ${secretName} is missing`, isUseless: true } };
  if (memberServer !== undefined) {
    return { secret, problem: { why: `the controller is to reach it at ${memberServer}`, isUseless: false } };
  }
  const expiresAt = Date.parse(secret?.metadata.annotations?.[TOKEN_EXPIRES_ANNOTATION] ?? "");
  return { secret, problem: await problemOfOwn(text, name, uselessToken(expiresAt, isNewAccount), context) };
}

/** Returns the problem of credentials that `join` stored. `useless`: why their token is known to be refused. */
async function problemOfOwn(
  text: string,
  name: string,
  useless: string | undefined,
  { member, connectText, signal }: StoredContext,
): Promise<Problem | undefined> {
  let stored: Connection | undefined;
  try {
    stored = await connectText(text, name);
    await tryToken(stored, signal);
  } catch (error) {
    if (isKubeError(error, "BadCredentials")) return { why: error.detail, isUseless: true };
    if (isKubeError(error, "NotSent") && stored !== undefined) {
      const changed = changedWay(stored, member);
      if (changed !== undefined) return { why: `${changed} (${error.detail})`, isUseless: true };
    }
    if (useless !== undefined) return tokenProblem(useless, text);
    if (isKubeError(error, "Unauthorized")) return tokenProblem("its token is refused", text);
    // The controller may reach an address that this machine does not, and rights take a moment.
    if (!isKubeError(error, "NotSent", "AnswerLost", "ServerError", "Forbidden")) throw error;
  }
  return useless === undefined ? undefined : tokenProblem(useless, text);
}

/** Returns the problem of an operator's own kubeconfig: only of a token of the host's account. */
async function problemOfForeign(
  text: string,
  name: string,
  isNewAccount: boolean,
  { hostId, connectText, signal }: StoredContext,
): Promise<Problem | undefined> {
  const claims = tokenClaims(text);
  if (claims?.namespace !== SYSTEM_NAMESPACE || claims.name !== hostAccountName(hostId)) return undefined;
  const useless = uselessToken(claims.expiresAt, isNewAccount);
  if (useless !== undefined) return tokenProblem(useless, text);
  try {
    await tryToken(await connectText(text, name), signal);
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    if (error.code === "Unauthorized") return tokenProblem("its token is refused", text);
  }
  return undefined;
}

function tokenProblem(why: string, text: string): Problem {
  return { why, isUseless: true, withToken: (token) => withToken(text, token) };
}

/** Returns why the API server refuses a token, as far as that is known without asking. `expiresAt` is in epoch ms. */
function uselessToken(expiresAt: number, isNewAccount: boolean): string | undefined {
  if (expiresAt <= realClock.wall()) return "its token has ended";
  return isNewAccount ? "its service account is a new one" : undefined;
}

/** Returns how a stored kubeconfig that fails differs from the given one, which reaches the same API server. */
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
