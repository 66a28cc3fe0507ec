import { CLUSTER_DEFAULTS } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import { type Secret, secretData } from "../../api/kubernetes.ts";
import { memberKubeconfig, requestToken } from "../../controllers/member-token/token.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { credentialsSecretName, hostAccountName } from "../member/access.ts";
import { storedConnection } from "../member/credentials.ts";
import { Failure } from "../shared/failure.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { findJoinSecret, type ValidJoin } from "./validate.ts";

/** Field manager of what `join` writes. */
export const FIELD_MANAGER = "legation-join";

/** Requests a token in the member, tries it, and stores it on the host. Resolves to the address that the controller will use. */
export async function giveCredentials(
  { name, memberServer }: { readonly name: string; readonly memberServer?: string | undefined },
  { hostId, joined }: ValidJoin,
  context: HostContext & { readonly member: Connection },
): Promise<string> {
  const { host, member, signal, report } = context;
  const account = { namespace: SYSTEM_NAMESPACE, name: hostAccountName(hostId) };
  const { token, expires } = await requestToken(member.client, account, signal);
  const before = joined === undefined ? undefined : await storedConnection(context, name, joined);
  const server = memberServer ?? before?.server ?? member.server;
  const isElsewhere = !isSameServer(server, member.server);
  const { certificateAuthority, skipsTlsVerify, tlsServerName } = member;
  const kubeconfig = memberKubeconfig({
    cluster: name,
    server,
    certificateAuthority,
    skipsTlsVerify,
    tlsServerName,
    // This machine's proxy leads to the kubeconfig's address. The controller reaches another address its own way.
    proxyUrl: isElsewhere ? undefined : member.proxyUrl,
    token,
  });
  await tryAccess(kubeconfig, { name, isElsewhere }, context);
  await storeCredentials({ cluster: name, kubeconfig, expires }, context);
  report(
    `${host.cluster}: Secret ${credentialsSecretName(name)} stored; its token ends ${expires} and is renewed before`,
  );
  return server;
}

// A new binding takes a moment to reach the authorizer's cache.
const ACCESS_ATTEMPTS = 20;
const ACCESS_RETRY_MS = 250;

/** Uses the new account once, so that wrong rights or a wrong address show here and not in the controller's log. */
async function tryAccess(
  kubeconfig: string,
  { name, isElsewhere }: { readonly name: string; readonly isElsewhere: boolean },
  { connectText, signal, report }: HostContext,
): Promise<void> {
  const { client, server } = await connectText(kubeconfig, name);
  for (let attempt = 1; ; attempt++) {
    try {
      await client.raw({ method: "GET", path: "/api/v1/pods?limit=1", signal });
      return;
    } catch (error) {
      if (isKubeError(error, "Forbidden", "Unauthorized") && attempt < ACCESS_ATTEMPTS) {
        await realClock.sleep(ACCESS_RETRY_MS, signal);
        continue;
      }
      // This machine need not reach the controller's address.
      if (!isElsewhere || !isKubeError(error, "NotSent", "AnswerLost")) throw error;
      report(`${name}: ${server} cannot be reached from here; the controller must reach it`);
      return;
    }
  }
}

/** Stores the member's kubeconfig on the host, in place of what an earlier join stored. Rejects with `Failure` for any other Secret. */
export async function storeCredentials(
  { cluster, kubeconfig, expires }: { readonly cluster: string; readonly kubeconfig: string; readonly expires: string },
  { host, signal }: Pick<HostContext, "host" | "signal">,
): Promise<void> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(cluster) };
  const before = await findJoinSecret(host, cluster, signal);
  const labels = { [VIRTUAL_NODE_LABEL]: cluster };
  const annotations = { [TOKEN_EXPIRES_ANNOTATION]: expires };
  const data = secretData({ [CLUSTER_DEFAULTS.credentialsKey]: kubeconfig });
  const metadata = { ...ref, labels, annotations };
  const secret: Secret = { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data };
  const write = { fieldManager: FIELD_MANAGER, signal };
  try {
    if (before === undefined) await host.create(secrets, secret, write);
    else {
      const body = { ...secret, metadata: { ...metadata, resourceVersion: before.metadata.resourceVersion } };
      await host.patch(secrets, ref, { type: "apply", body, force: true }, write);
    }
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists", "Conflict")) throw error;
    throw new Failure("refused", {
      object: `Secret ${ref.namespace}/${ref.name}`,
      problem: "another client wrote it meanwhile, perhaps another `legation join`",
      remedy: "look at `legation status`, and join again, under another name if this one is taken",
      cause: error,
    });
  }
}

/** Reports whether two URLs name the same API server. */
export function isSameServer(current: string, wanted: string): boolean {
  const [one, other] = [current, wanted].map((url) => URL.parse(url)?.href.replace(/\/+$/, ""));
  return one === other;
}
