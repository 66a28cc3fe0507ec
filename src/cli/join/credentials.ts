import { stringify } from "yaml";
import { CLUSTER_DEFAULTS } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { Secret, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { credentialsSecretName, requestToken } from "../member/access.ts";
import { remove } from "../shared/removal.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import type { UndoStack } from "./undo.ts";

/** Field manager of what `join` writes on the host. */
export const FIELD_MANAGER = "legation-join";

export interface MemberAccess {
  readonly cluster: string;
  readonly server: string;
  /** PEM. Undefined: the system's roots vouch for the server. */
  readonly certificateAuthority?: string | undefined;
  readonly skipsTlsVerify: boolean;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  readonly token: string;
}

/** Builds a kubeconfig that names no file and runs no program, so that it works wherever the controller is. */
export function memberKubeconfig(access: MemberAccess): string {
  const { cluster, server, certificateAuthority, skipsTlsVerify, tlsServerName, proxyUrl, token } = access;
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          ...(certificateAuthority === undefined
            ? {}
            : { "certificate-authority-data": Buffer.from(certificateAuthority).toString("base64") }),
          ...(skipsTlsVerify ? { "insecure-skip-tls-verify": true } : {}),
          ...(tlsServerName === undefined ? {} : { "tls-server-name": tlsServerName }),
          ...(proxyUrl === undefined ? {} : { "proxy-url": proxyUrl }),
        },
      },
    ],
    users: [{ name: "legation", user: { token } }],
    contexts: [{ name: cluster, context: { cluster, user: "legation" } }],
    "current-context": cluster,
  });
}

/** A Secret in Legation's namespace that an operator made, and the key of the kubeconfig in it. */
export interface ForeignSecret {
  readonly name: string;
  readonly key: string;
}

/** The credentials that a join replaces. */
interface Replacement {
  readonly replaced: Stored<Secret> | undefined;
  /** Builds the stored kubeconfig with another token. Undefined: a new kubeconfig is needed. */
  readonly withToken?: ((token: string) => string) | undefined;
  readonly foreign?: ForeignSecret | undefined;
}

/** Requests a token in the member, tries it, and stores it on the host. */
export async function giveCredentials(
  { name, memberServer }: { readonly name: string; readonly memberServer?: string | undefined },
  context: HostContext & { readonly member: Connection; readonly hostId: string; readonly undo: UndoStack },
  { replaced, withToken, foreign }: Replacement,
): Promise<StoredSecret> {
  const { host, member, hostId, signal, report } = context;
  const { token, expires } = await requestToken(member.client, hostId, signal);
  const { certificateAuthority, skipsTlsVerify, tlsServerName } = member;
  const kubeconfig =
    withToken?.(token) ??
    memberKubeconfig({
      cluster: name,
      server: memberServer ?? member.server,
      certificateAuthority,
      skipsTlsVerify,
      tlsServerName,
      // This machine's proxy leads to the kubeconfig's address. The controller reaches another address its own way.
      proxyUrl: memberServer === undefined ? member.proxyUrl : undefined,
      token,
    });
  // The controller uses a stored address and --member-server's; this machine need not reach either.
  const isForController = withToken !== undefined || memberServer !== undefined;
  await tryAccess(kubeconfig, { name, isForController }, context);
  const stored = await storeCredentials({ cluster: name, kubeconfig, expires, foreign }, { ...context, replaced });
  report(`${host.cluster}: Secret ${stored.name} stored; its token ends ${expires} and is renewed before`);
  return stored;
}

/** Requests what every host may read in a member. Rejects with KubeError. */
export async function tryToken({ client }: Connection, signal: AbortSignal): Promise<void> {
  await client.raw({ method: "GET", path: "/api/v1/pods?limit=1", signal });
}

// A new binding takes a moment to reach the authorizer's cache.
const ACCESS_ATTEMPTS = 20;
const ACCESS_RETRY_MS = 250;

/** Uses the new account once, so that wrong rights or a wrong address show here and not in the controller's log. */
async function tryAccess(
  kubeconfig: string,
  { name, isForController }: { readonly name: string; readonly isForController: boolean },
  { connectText, signal, report }: HostContext,
): Promise<void> {
  const connection = await connectText(kubeconfig, name);
  for (let attempt = 1; ; attempt++) {
    try {
      await tryToken(connection, signal);
      return;
    } catch (error) {
      if (isKubeError(error, "Forbidden", "Unauthorized") && attempt < ACCESS_ATTEMPTS) {
        await realClock.sleep(ACCESS_RETRY_MS, signal);
        continue;
      }
      if (!isForController || !isKubeError(error, "NotSent", "AnswerLost")) throw error;
      report(`${name}: ${connection.server} cannot be reached from here; the controller must reach it`);
      return;
    }
  }
}

/** Credentials on the host, as one join stored them. */
export interface StoredSecret {
  readonly name: string;
  /** The Secret that was replaced. */
  readonly replaced: Stored<Secret> | undefined;
  /** Reports whether the Secret still holds the credentials that this join stored. */
  readonly isIn: (secret: Secret | undefined) => boolean;
}

/**
 * Stores the member's kubeconfig on the host in place of `replaced`, and restores that one on undo. Of a `foreign` Secret it writes
 * the kubeconfig alone. Rejects with AlreadyExists or Conflict when another client wrote the Secret meanwhile.
 */
export async function storeCredentials(
  options: {
    readonly cluster: string;
    readonly kubeconfig: string;
    readonly expires: string;
    readonly foreign?: ForeignSecret | undefined;
  },
  {
    host,
    undo,
    signal,
    replaced,
  }: {
    readonly host: ClusterClient;
    readonly undo: UndoStack;
    readonly signal: AbortSignal;
    readonly replaced: Stored<Secret> | undefined;
  },
): Promise<StoredSecret> {
  const { cluster, kubeconfig, expires, foreign } = options;
  const { name, key } = foreign ?? { name: credentialsSecretName(cluster), key: CLUSTER_DEFAULTS.credentialsKey };
  const ref = { namespace: SYSTEM_NAMESPACE, name };
  const data = { [key]: Buffer.from(kubeconfig).toString("base64") };
  const isIn: StoredSecret["isIn"] = (found) => found?.data?.[key] === data[key];
  undo.push(`${host.cluster}: Secret ${SYSTEM_NAMESPACE}/${name}`, async (undoSignal) => {
    const found = await host.find(secrets, ref, { signal: undoSignal });
    // The write never arrived, or another client overwrote it.
    if (found === undefined || !isIn(found)) return;
    const { uid, resourceVersion } = found.metadata;
    if (replaced === undefined) {
      await remove(host, secrets, ref, { uid, signal: undoSignal });
      return;
    }
    const labels = beforeIn(replaced.metadata.labels, VIRTUAL_NODE_LABEL);
    const annotations = beforeIn(replaced.metadata.annotations, TOKEN_EXPIRES_ANNOTATION);
    const marks = foreign === undefined ? { labels, annotations } : {};
    const body = { metadata: { resourceVersion, ...marks }, data: beforeIn(replaced.data, key) };
    await host.patch(secrets, ref, { type: "merge", body }, { signal: undoSignal });
  });
  const write = { fieldManager: FIELD_MANAGER, signal };
  const resourceVersion = replaced?.metadata.resourceVersion;
  if (replaced !== undefined && foreign !== undefined) {
    await host.patch(secrets, ref, { type: "merge", body: { metadata: { resourceVersion }, data } }, write);
    return { name, replaced, isIn };
  }
  const labels = { [VIRTUAL_NODE_LABEL]: cluster };
  const metadata = { ...ref, labels, annotations: { [TOKEN_EXPIRES_ANNOTATION]: expires } };
  const secret: Secret = { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data };
  if (replaced === undefined) await host.create(secrets, secret, write);
  else {
    const body = { ...secret, metadata: { ...metadata, resourceVersion } };
    await host.patch(secrets, ref, { type: "apply", body, force: true }, write);
  }
  return { name, replaced, isIn };
}

/** Returns the merge patch that restores a key; null removes a key that was absent. */
function beforeIn(
  before: Readonly<Record<string, string>> | undefined,
  key: string,
): Readonly<Record<string, string | null>> {
  return { [key]: before?.[key] ?? null };
}
