import { randomBytes } from "node:crypto";
import { accessAccountName } from "../../api/access.ts";
import { CLUSTER_DEFAULTS } from "../../api/cluster.ts";
import {
  AGENT_KEY_ANNOTATION,
  AGENT_TOKEN_ANNOTATION,
  AGENT_TOKEN_EXPIRES_ANNOTATION,
  HOST_LABEL,
  HUB_ADDRESSES_ANNOTATION,
  HUB_SECRET,
  MANAGED_BY,
  MANAGED_BY_LABEL,
  SYSTEM_NAMESPACE,
  TOKEN_EXPIRES_ANNOTATION,
  VIRTUAL_NODE_LABEL,
} from "../../api/keys.ts";
import { type Secret, type Stored, secretData, secretText } from "../../api/kubernetes.ts";
import { firstAuthorities, type HubAuthorities, readAuthorities, trusted } from "../../controllers/agents/authority.ts";
import { sha256 } from "../../controllers/agents/credentials.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { deployments, secrets } from "../../kube/resources.ts";
import { retryOnConflict } from "../../kube/retry.ts";
import { realClock } from "../../runtime/clock.ts";
import {
  agentName,
  credentialsSecretName,
  hostAccountName,
  MEMBER_CLUSTER_LABEL,
  role,
  roleBinding,
} from "../member/access.ts";
import { AGENT_KEYS } from "../member/agent-keys.ts";
import { imageOf } from "../shared/deployment-image.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import type { HostContext } from "../shared/session.ts";
import { until } from "../shared/wait.ts";
import { FIELD_MANAGER } from "./credentials.ts";
import { findJoinSecret } from "./validate.ts";

const HOUR_MS = 60 * 60_000;
const TOKEN_BYTES = 32;
// Replicas of a command that start together find the other's Secret after one conflict.
const ATTEMPTS = 3;

/** Returns the hub's authorities, made by the first join. An address that agents are told must be in its certificate. */
async function ensureHub(
  address: string | undefined,
  { host, signal, report }: HostContext,
): Promise<{ readonly authorities: HubAuthorities; readonly address: string }> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: HUB_SECRET };
  return await retryOnConflict(async () => {
    const found = await host.find(secrets, ref, { signal });
    const before = readAuthorities(found);
    const chosen = address ?? before?.addresses[0];
    if (chosen === undefined) throw noAddress();
    if (before?.addresses.includes(chosen) === true) return { authorities: before, address: chosen };
    const stored = await writeHub(host, { found, before, address: chosen }, signal);
    const authorities = readAuthorities(stored);
    if (authorities === undefined) throw new Error(`Secret ${HUB_SECRET} was stored without its keys`);
    report(`${host.cluster}: Secret ${HUB_SECRET} stored: agents reach the hub at ${chosen}`);
    return { authorities, address: chosen };
  }, ATTEMPTS);
}

async function writeHub(
  host: ClusterClient,
  options: {
    readonly found: Stored<Secret> | undefined;
    readonly before: HubAuthorities | undefined;
    readonly address: string;
  },
  signal: AbortSignal,
): Promise<Secret> {
  const { found, before, address } = options;
  const write = { fieldManager: FIELD_MANAGER, signal };
  const made = before === undefined ? await firstAuthorities(address, realClock.wall()) : undefined;
  if (found === undefined && made !== undefined) return await host.create(secrets, made, write);
  const addresses = [...(before?.addresses ?? []), address].join(",");
  const metadata = {
    resourceVersion: found?.metadata.resourceVersion,
    annotations: { [HUB_ADDRESSES_ANNOTATION]: addresses },
  };
  const body = { metadata, ...(made === undefined ? {} : { data: made.data }) };
  return await host.patch(secrets, { namespace: SYSTEM_NAMESPACE, name: HUB_SECRET }, { type: "merge", body }, write);
}

function noAddress(): Failure {
  return new Failure("usage", {
    object: "--hub-address",
    problem: "is missing: no agent was joined before, so where agents find this host is not known",
    remedy:
      "write --hub-address HOST:PORT, at which members reach the controller's --hub-listen, e.g. --hub-address hub.example.org:8132",
  });
}

/** Stores the digest of a new token in the member's Secret. A token that was given before is void then. */
async function storeToken(token: string, name: string, { host, signal, report }: HostContext): Promise<void> {
  const now = realClock.wall();
  const expires = new Date(now + HOUR_MS).toISOString();
  const ref = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(name) };
  const before = await findJoinSecret(host, name, signal);
  const annotations = {
    [AGENT_TOKEN_ANNOTATION]: sha256(token),
    [AGENT_TOKEN_EXPIRES_ANNOTATION]: expires,
    // The agent brings credentials when it connects.
    [TOKEN_EXPIRES_ANNOTATION]: before?.metadata.annotations?.[TOKEN_EXPIRES_ANNOTATION] ?? new Date(now).toISOString(),
  };
  const write = { fieldManager: FIELD_MANAGER, signal };
  if (before === undefined) {
    const metadata = { ...ref, labels: { [VIRTUAL_NODE_LABEL]: name }, annotations };
    await host.create(secrets, { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque" }, write);
  } else {
    // Earlier credentials stay until the agent brings others.
    const metadata = {
      resourceVersion: before.metadata.resourceVersion,
      annotations: { ...annotations, [AGENT_KEY_ANNOTATION]: null },
    };
    await host.patch(secrets, ref, { type: "merge", body: { metadata } }, write);
  }
  report(`${host.cluster}: Secret ${ref.name} stored; its token for the agent is valid until ${expires}`);
}

export async function storedKubeconfig(
  name: string,
  { host, signal }: Pick<HostContext, "host" | "signal">,
): Promise<string | undefined> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(name) };
  return secretText(await host.find(secrets, ref, { signal }), CLUSTER_DEFAULTS.credentialsKey);
}

/** Waits until an agent has brought other credentials than those of before. Returns false on timeout. */
export function waitForAgent(
  stored: () => Promise<string | undefined>,
  { before, timeoutMs }: { readonly before: string | undefined; readonly timeoutMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  const brought = async (): Promise<boolean> => {
    const kubeconfig = await stored();
    return kubeconfig !== undefined && kubeconfig !== before;
  };
  return until(brought, { timeoutMs, signal });
}

/** Returns the image of the host's controller, which the agent runs, too. `manifests` name it where the controller runs outside. */
export async function agentImage(
  host: ClusterClient,
  manifests: readonly Manifest[],
  signal: AbortSignal,
): Promise<string> {
  const manifest = manifests.find(({ kind }) => kind === deployments.kind);
  const ref = { namespace: SYSTEM_NAMESPACE, name: manifest?.metadata.name ?? "" };
  const installed = await host.find(deployments, ref, { signal });
  const image = imageOf(installed) ?? imageOf(manifest);
  if (image !== undefined) return image;
  throw new Failure("usage", { object: "--agent-image", problem: "is missing", remedy: "write --agent-image IMAGE" });
}

/** An agent that is to be: its objects in the member, and what the host has to know before it can connect. */
export interface PreparedAgent {
  readonly objects: readonly Manifest[];
  readonly storeToken: () => Promise<void>;
}

export async function prepareAgent(
  options: Omit<AgentManifestOptions, "hub" | "authorities" | "token"> & {
    readonly hubAddress: string | undefined;
  },
  context: HostContext,
): Promise<PreparedAgent> {
  const { hubAddress, ...rest } = options;
  const { authorities, address } = await ensureHub(hubAddress, context);
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  return {
    objects: agentObjects({ ...rest, hub: address, authorities: trusted(authorities), token }),
    storeToken: () => storeToken(token, options.cluster, context),
  };
}

interface AgentManifestOptions {
  readonly hostId: string;
  readonly cluster: string;
  readonly image: string;
  /** `HOST:PORT` of the hub. */
  readonly hub: string;
  /** PEM bundle of the hub's authorities. */
  readonly authorities: string;
  readonly token: string;
  /** Adds what pods of the member need to reach the host's API server through it. */
  readonly homeApi: boolean;
  /** The agent also requests tokens of the account by which `legation access` acts for users. */
  readonly access: boolean;
}

const HEALTH_PORT = 8080;
const HOME_API_PORT = 6443;
// Pods that reach an API server by its Service's name expect it there.
const SERVICE_PORT = 443;
// The host evicts pods of a member that is not ready for 300 s, Kubernetes' default: the agent has to be elsewhere before.
const NODE_LOST_SECONDS = 30;

/** Returns the objects that run a host's agent in a member, with rights on its own Secret, tokens of the host, its Service. */
export function agentObjects(options: AgentManifestOptions): Manifest[] {
  const { hostId, cluster, image, hub, authorities, token, access, homeApi } = options;
  const name = agentName(hostId);
  const account = hostAccountName(hostId);
  const accessAccount = access ? accessAccountName(hostId) : "";
  const accounts = access ? [account, accessAccount] : [account];
  const labels = { [MANAGED_BY_LABEL]: MANAGED_BY, [HOST_LABEL]: hostId, [MEMBER_CLUSTER_LABEL]: cluster };
  const metadata = { name, namespace: SYSTEM_NAMESPACE, labels };
  const podLabels = { "app.kubernetes.io/name": name };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    role("Role", metadata, [
      { apiGroups: [""], resources: ["secrets"], resourceNames: [name], verbs: ["get", "patch"] },
      { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: accounts, verbs: ["create"] },
      ...(homeApi ? [{ apiGroups: [""], resources: ["services"], resourceNames: [name], verbs: ["get"] }] : []),
    ]),
    roleBinding("Role", metadata),
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      type: "Opaque",
      data: secretData({
        [AGENT_KEYS.hub]: hub,
        [AGENT_KEYS.cluster]: cluster,
        [AGENT_KEYS.account]: account,
        [AGENT_KEYS.accessAccount]: accessAccount,
        [AGENT_KEYS.authorities]: authorities,
        [AGENT_KEYS.token]: token,
        // An earlier certificate may be for an earlier Cluster of the name.
        ...Object.fromEntries(
          [AGENT_KEYS.cert, AGENT_KEYS.key, AGENT_KEYS.request, AGENT_KEYS.requestKey].map((key) => [key, ""]),
        ),
      }),
    },
    ...(homeApi ? homeApiObjects(hostId, metadata, podLabels) : []),
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: {
        replicas: 1,
        selector: { matchLabels: podLabels },
        template: {
          // A new token is used by a new pod.
          metadata: { labels: podLabels, annotations: { [AGENT_TOKEN_ANNOTATION]: sha256(token) } },
          spec: podSpec(name, image, homeApi),
        },
      },
    },
  ];
}

/** Returns the Service by which pods reach the host's API server, and a policy that lets the host's own pods alone use it. */
function homeApiObjects(
  hostId: string,
  metadata: Manifest["metadata"],
  podLabels: Readonly<Record<string, string>>,
): Manifest[] {
  const ports = [{ name: "home-api", port: SERVICE_PORT, targetPort: "home-api" }];
  const ofHost = { namespaceSelector: {}, podSelector: { matchLabels: { [HOST_LABEL]: hostId } } };
  return [
    { apiVersion: "v1", kind: "Service", metadata, spec: { selector: podLabels, ports } },
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata,
      spec: {
        podSelector: { matchLabels: podLabels },
        policyTypes: ["Ingress"],
        ingress: [{ from: [ofHost], ports: [{ port: "home-api" }] }, { ports: [{ port: "health" }] }],
      },
    },
  ];
}

function podSpec(name: string, image: string, homeApi: boolean): object {
  const probe = (path: string): object => ({ httpGet: { path, port: "health" }, periodSeconds: 10, timeoutSeconds: 5 });
  return {
    serviceAccountName: name,
    tolerations: ["not-ready", "unreachable"].map((taint) => ({
      key: `node.kubernetes.io/${taint}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: NODE_LOST_SECONDS,
    })),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      seccompProfile: { type: "RuntimeDefault" },
    },
    containers: [
      {
        name: "agent",
        image,
        args: [
          "agent",
          `--secret=${name}`,
          `--health-listen=:${HEALTH_PORT}`,
          ...(homeApi ? [`--home-api-listen=:${HOME_API_PORT}`, `--home-api-service=${name}`] : []),
        ],
        ports: [
          { name: "health", containerPort: HEALTH_PORT },
          ...(homeApi ? [{ name: "home-api", containerPort: HOME_API_PORT }] : []),
        ],
        // A process that hangs ends no connections in order: it is replaced without the time for them.
        livenessProbe: { ...probe("/livez"), failureThreshold: 6, terminationGracePeriodSeconds: 10 },
        readinessProbe: probe("/readyz"),
        resources: { requests: { cpu: "20m", memory: "96Mi" }, limits: { memory: homeApi ? "512Mi" : "256Mi" } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        },
      },
    ],
  };
}
