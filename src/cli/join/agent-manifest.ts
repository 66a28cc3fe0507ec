import { accessAccountName } from "../../api/access.ts";
import { AGENT_TOKEN_ANNOTATION, HOST_LABEL, MANAGED_BY, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { secretData } from "../../api/kubernetes.ts";
import { sha256 } from "../../controllers/agents/credentials.ts";
import { agentName, hostAccountName, MEMBER_CLUSTER_LABEL } from "../member/access.ts";
import { AGENT_KEYS } from "../member/agent-keys.ts";
import { role, roleBinding } from "../member/rbac.ts";
import type { Manifest } from "../shared/manifests.ts";

export interface AgentManifestOptions {
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
