import { accessAccountName } from "../../api/access.ts";
import { CLUSTER_DEFAULTS, type Cluster } from "../../api/cluster.ts";
import { defined } from "../../api/defined.ts";
import {
  AGENT_KEY_ANNOTATION,
  AGENT_TOKEN_ANNOTATION,
  AGENT_TOKEN_EXPIRES_ANNOTATION,
  HUB_ADDRESSES_ANNOTATION,
  HUB_SECRET,
  SYSTEM_NAMESPACE,
  TOKEN_EXPIRES_ANNOTATION,
  VIRTUAL_NODE_LABEL,
} from "../../api/keys.ts";
import { type Stored, secretData, secretText } from "../../api/kubernetes.ts";
import { type MemberAddress, memberKubeconfig } from "../../clusters/kubeconfig.ts";
import { firstAuthorities, readAuthorities, trusted } from "../../controllers/agents/authority.ts";
import { sha256 } from "../../controllers/agents/credentials.ts";
import { ignoring, isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { retryOnConflict } from "../../kube/retry.ts";
import { requestToken } from "../../kube/service-account-token.ts";
import { realClock } from "../../runtime/clock.ts";
import { credentialsSecretName, hostAccountName } from "../member/access.ts";
import { storedConnection } from "../member/credentials.ts";
import { Failure } from "../shared/failure.ts";
import type { HostContext } from "../shared/session.ts";
import { withNewRights } from "../shared/wait.ts";
import { findJoinSecret, type JoinOptions, type MemberContext } from "./validate.ts";

export const FIELD_MANAGER = "legation-join";

/** Returns the address that the host will use: the given one, else as before, else the kubeconfig's. */
export async function memberAddress(
  { name, memberServer }: JoinOptions,
  joined: Stored<Cluster> | undefined,
  context: MemberContext,
): Promise<MemberAddress> {
  const { member } = context;
  const before = joined && (await storedConnection(context, name, joined));
  const server = memberServer ?? before?.server ?? member.server;
  // This machine's proxy leads to the kubeconfig's address. The controller reaches another address its own way.
  const proxyUrl = isSameServer(server, member.server) ? member.proxyUrl : undefined;
  return { ...member, cluster: name, server, proxyUrl };
}

/** Requests a token of the host's account in the member, tries it, and stores it on the host. */
export async function giveCredentials(hostId: string, address: MemberAddress, context: MemberContext): Promise<void> {
  const { member, connectText, signal, report } = context;
  const { cluster } = address;
  const account = { namespace: SYSTEM_NAMESPACE, name: hostAccountName(hostId) };
  const given = await requestToken(member.client, account, signal);
  const { client, server } = await connectText(memberKubeconfig({ ...address, ...given }), cluster);
  try {
    // Wrong rights or a wrong address show here, and not in the controller's log.
    await withNewRights(() => client.raw({ method: "GET", path: "/api/v1/pods?limit=1", signal }), signal);
  } catch (error) {
    // This machine need not reach the controller's address.
    if (isSameServer(server, member.server) || !isKubeError(error, "NotSent", "AnswerLost")) throw error;
    report(`${cluster}: ${server} cannot be reached from here; the controller must reach it`);
  }
  await storeToken(address, given, SYSTEM_NAMESPACE, context);
}

/** Returns the kubeconfig of the member in the Secret that `join` makes in a namespace of the host. */
export async function storedKubeconfig(
  cluster: string,
  namespace: string,
  { host, signal }: HostContext,
): Promise<string | undefined> {
  const secret = await host.find(secrets, { namespace, name: credentialsSecretName(cluster) }, { signal });
  return secretText(secret, CLUSTER_DEFAULTS.credentialsKey);
}

/** A change to the Secret of `join`. */
interface SecretChange {
  readonly annotations: Readonly<Record<string, string>>;
  /** An annotation that goes. */
  readonly removes?: string;
  readonly kubeconfig?: string;
}

/** Stores a change to the Secret of `join` on the host. Rejects with `Failure` for any other Secret, or if another client wrote it. */
export async function storeCredentials(
  cluster: string,
  { annotations, removes, kubeconfig }: SecretChange,
  { host, signal }: Pick<HostContext, "host" | "signal">,
  namespace: string = SYSTEM_NAMESPACE,
): Promise<void> {
  const ref = { namespace, name: credentialsSecretName(cluster) };
  const before = await findJoinSecret(host, cluster, signal, namespace);
  const labels = { [VIRTUAL_NODE_LABEL]: cluster };
  const data = kubeconfig === undefined ? {} : secretData({ [CLUSTER_DEFAULTS.credentialsKey]: kubeconfig });
  const write = { fieldManager: FIELD_MANAGER, signal };
  try {
    if (before === undefined) {
      const marks = { [TOKEN_EXPIRES_ANNOTATION]: new Date(realClock.wall()).toISOString(), ...annotations };
      const metadata = { ...ref, labels, annotations: marks };
      await host.create(secrets, { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data }, write);
    } else {
      const { resourceVersion } = before.metadata;
      const changed = removes === undefined ? annotations : { ...annotations, [removes]: null };
      const body = { metadata: { resourceVersion, labels, annotations: changed }, data };
      await host.patch(secrets, ref, { type: "merge", body }, write);
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

/** A token of a service account in a member. */
export type GivenToken = Awaited<ReturnType<typeof requestToken>>;

/** Returns a token by which users of the prefix can be impersonated in the member. Undefined if the member refuses that. */
export async function impersonatingToken(
  { hostId, cluster, prefix }: { readonly hostId: string; readonly cluster: string; readonly prefix: string },
  { member, connectText, signal }: MemberContext,
): Promise<GivenToken | undefined> {
  const account = { namespace: SYSTEM_NAMESPACE, name: accessAccountName(hostId) };
  const given = await requestToken(member.client, account, signal);
  const name = `${prefix}legation-join`;
  const as = { user: name, uid: name, groups: [name], extra: { "legation.dev/join": [name] } };
  const { client } = await connectText(memberKubeconfig({ ...member, cluster, token: given.token, as }), cluster);
  const spec = { resourceAttributes: { verb: "get", resource: "pods" } };
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec };
  const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const tried = withNewRights(() => client.raw({ method: "POST", path, body, signal }), signal).then(() => given);
  return await ignoring(tried, "Forbidden", "Unauthorized");
}

/** Stores a token of the member in a namespace of the host: that of the controller, or that of `legation access`. */
export async function storeToken(
  address: MemberAddress,
  { token, expires }: GivenToken,
  namespace: string,
  context: HostContext,
): Promise<void> {
  const annotations = { [TOKEN_EXPIRES_ANNOTATION]: expires };
  const change = { annotations, kubeconfig: memberKubeconfig({ ...address, token }) };
  await storeCredentials(address.cluster, change, context, namespace);
  const what = `Secret ${namespace}/${credentialsSecretName(address.cluster)}`;
  context.report(`${context.host.cluster}: ${what} stored; its token ends ${expires} and is renewed before`);
}

/** The hub, as agents know it. */
interface KnownHub {
  /** `HOST:PORT`. */
  readonly hub: string;
  /** PEM bundle of its authorities. */
  readonly authorities: string;
}

// Replicas of a command that start together find the other's Secret after one conflict.
const ATTEMPTS = 3;

/** Returns the hub, whose authorities the first join makes. An address that agents are told must be in its certificate. */
export async function ensureHub(address: string | undefined, context: HostContext): Promise<KnownHub> {
  const { host, signal, report } = context;
  const ref = { namespace: SYSTEM_NAMESPACE, name: HUB_SECRET };
  const write = { fieldManager: FIELD_MANAGER, signal };
  return await retryOnConflict(async () => {
    const found = await host.find(secrets, ref, { signal });
    const before = readAuthorities(found);
    const hub = address ?? before?.addresses[0];
    if (hub === undefined) throw noAddress();
    if (before?.addresses.includes(hub) === true) return { hub, authorities: trusted(before) };
    const { metadata, ...rest } =
      before === undefined
        ? await firstAuthorities(hub, realClock.wall())
        : { metadata: { annotations: { [HUB_ADDRESSES_ANNOTATION]: [...before.addresses, hub].join(",") } } };
    const resourceVersion = found?.metadata.resourceVersion;
    const body = { metadata: { ...metadata, ...defined({ resourceVersion }) }, ...rest };
    const stored = readAuthorities(
      await (found === undefined
        ? host.create(secrets, body, write)
        : host.patch(secrets, ref, { type: "merge", body }, write)),
    );
    if (stored === undefined) throw new Error(`Secret ${HUB_SECRET} was stored without its keys`);
    report(`${host.cluster}: Secret ${HUB_SECRET} stored: agents reach the hub at ${hub}`);
    return { hub, authorities: trusted(stored) };
  }, ATTEMPTS);
}

function noAddress(): Failure {
  return new Failure("usage", {
    object: "--hub-address",
    problem: "is missing: no agent was joined before, so where agents find this host is not known",
    remedy:
      "write --hub-address HOST:PORT, at which members reach the controller's --hub-listen, e.g. --hub-address hub.example.org:8132",
  });
}

const HOUR_MS = 60 * 60_000;

/** Stores the digest of a new token in the member's Secret. A token that was given before is void then. */
export async function storeAgentToken(token: string, cluster: string, context: HostContext): Promise<void> {
  const expires = new Date(realClock.wall() + HOUR_MS).toISOString();
  const annotations = { [AGENT_TOKEN_ANNOTATION]: sha256(token), [AGENT_TOKEN_EXPIRES_ANNOTATION]: expires };
  // Earlier credentials stay until the agent brings others, when it connects.
  await storeCredentials(cluster, { annotations, removes: AGENT_KEY_ANNOTATION }, context);
  const name = credentialsSecretName(cluster);
  context.report(`${context.host.cluster}: Secret ${name} stored; its token for the agent is valid until ${expires}`);
}

/** Reports whether two URLs lead to the same server. */
export function isSameServer(current: string, wanted: string): boolean {
  const [one, other] = [current, wanted].map((url) => URL.parse(url)?.href.replace(/\/+$/, ""));
  return one === other;
}
