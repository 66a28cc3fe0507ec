import { ACCESS_KUBECONFIG_KEY, ACCESS_NAMESPACE, accessSecretName } from "../../api/access.ts";
import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import { type Secret, type Stored, secretData } from "../../api/kubernetes.ts";
import { type MemberAddress, memberKubeconfig } from "../../clusters/kubeconfig.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { requestToken } from "../../kube/service-account-token.ts";
import { credentialsSecretName, hostAccountName } from "../member/access.ts";
import { storedConnection } from "../member/credentials.ts";
import { Failure } from "../shared/failure.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { withNewRights } from "../shared/wait.ts";
import type { AccessToken } from "./user-access.ts";
import { findJoinSecret } from "./validate.ts";

export const FIELD_MANAGER = "legation-join";

/** How the host will reach a member, and whether that is another address than the kubeconfig's. */
export interface JoinedAddress {
  readonly address: MemberAddress;
  readonly isElsewhere: boolean;
}

/** Returns the address that the host will use: the given one, else as before, else the kubeconfig's. */
export async function memberAddress(
  { name, memberServer }: { readonly name: string; readonly memberServer?: string | undefined },
  joined: Stored<Cluster> | undefined,
  context: HostContext & { readonly member: Connection },
): Promise<JoinedAddress> {
  const { member } = context;
  const before = joined === undefined ? undefined : await storedConnection(context, name, joined);
  const server = memberServer ?? before?.server ?? member.server;
  const isElsewhere = !isSameServer(server, member.server);
  const { certificateAuthority, skipsTlsVerify, tlsServerName } = member;
  const address = {
    cluster: name,
    server,
    certificateAuthority,
    skipsTlsVerify,
    tlsServerName,
    // This machine's proxy leads to the kubeconfig's address. The controller reaches another address its own way.
    proxyUrl: isElsewhere ? undefined : member.proxyUrl,
  };
  return { address, isElsewhere };
}

/** Requests a token of the host's account in the member, tries it, and stores it on the host. */
export async function giveCredentials(
  hostId: string,
  { address, isElsewhere }: JoinedAddress,
  context: HostContext & { readonly member: Connection },
): Promise<void> {
  const { host, member, signal, report } = context;
  const { cluster } = address;
  const account = { namespace: SYSTEM_NAMESPACE, name: hostAccountName(hostId) };
  const { token, expires } = await requestToken(member.client, account, signal);
  const kubeconfig = memberKubeconfig({ ...address, token });
  await tryAccess(kubeconfig, { name: cluster, isElsewhere }, context);
  await storeCredentials({ cluster, kubeconfig, expires }, context);
  report(
    `${host.cluster}: Secret ${credentialsSecretName(cluster)} stored; its token ends ${expires} and is renewed before`,
  );
}

/** Uses the new account once, so that wrong rights or a wrong address show here and not in the controller's log. */
async function tryAccess(
  kubeconfig: string,
  { name, isElsewhere }: { readonly name: string; readonly isElsewhere: boolean },
  { connectText, signal, report }: HostContext,
): Promise<void> {
  const { client, server } = await connectText(kubeconfig, name);
  try {
    await withNewRights(() => client.raw({ method: "GET", path: "/api/v1/pods?limit=1", signal }), signal);
  } catch (error) {
    // This machine need not reach the controller's address.
    if (!isElsewhere || !isKubeError(error, "NotSent", "AnswerLost")) throw error;
    report(`${name}: ${server} cannot be reached from here; the controller must reach it`);
  }
}

/** Stores the member's kubeconfig on the host, in place of what an earlier join stored. Rejects with `Failure` for any other Secret. */
export async function storeCredentials(
  { cluster, kubeconfig, expires }: { readonly cluster: string; readonly kubeconfig: string; readonly expires: string },
  { host, signal }: Pick<HostContext, "host" | "signal">,
): Promise<void> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(cluster) };
  const before = await findJoinSecret(host, cluster, signal);
  const secret = secretOf(ref, { cluster, expires, data: { [CLUSTER_DEFAULTS.credentialsKey]: kubeconfig } });
  const write = { fieldManager: FIELD_MANAGER, signal };
  try {
    if (before === undefined) await host.create(secrets, secret, write);
    else {
      const body = { ...secret, metadata: { ...secret.metadata, resourceVersion: before.metadata.resourceVersion } };
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

/** Stores what `legation access` reaches the member with. */
export async function storeAccessCredentials(
  address: MemberAddress,
  { token, expires }: AccessToken,
  { host, signal, report }: HostContext,
): Promise<void> {
  const { cluster } = address;
  const ref = { namespace: ACCESS_NAMESPACE, name: accessSecretName(cluster) };
  const data = { [ACCESS_KUBECONFIG_KEY]: memberKubeconfig({ ...address, token }) };
  const body = secretOf(ref, { cluster, expires, data });
  const write = { fieldManager: FIELD_MANAGER, signal };
  await host.patch(secrets, ref, { type: "apply", body, force: true }, write);
  report(`${host.cluster}: Secret ${ref.namespace}/${ref.name} stored; \`legation access\` renews its token`);
}

function secretOf(
  ref: { readonly namespace: string; readonly name: string },
  {
    cluster,
    expires,
    data,
  }: { readonly cluster: string; readonly expires: string; readonly data: Readonly<Record<string, string>> },
): Secret {
  const marks = {
    labels: { [VIRTUAL_NODE_LABEL]: cluster },
    annotations: { [TOKEN_EXPIRES_ANNOTATION]: expires },
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...ref, ...marks },
    type: "Opaque",
    data: secretData(data),
  };
}

export function isSameServer(current: string, wanted: string): boolean {
  const [one, other] = [current, wanted].map((url) => URL.parse(url)?.href.replace(/\/+$/, ""));
  return one === other;
}
