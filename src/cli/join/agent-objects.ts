import { accessAccountName } from "../../api/access.ts";
import { AGENT_TOKEN_ANNOTATION, HOST_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { secretData } from "../../api/kubernetes.ts";
import { sha256 } from "../../controllers/agents/credentials.ts";
import { agentName, hostAccountName, role, roleBinding } from "../member/access.ts";
import { AGENT_KEYS } from "../member/agent-keys.ts";
import type { Manifest } from "../shared/manifests.ts";
import { type HostAccount, metadataOf } from "./grant-access.ts";

/** Settings of an agent, beside the host's account. */
export interface AgentSettings {
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
export function agentObjects(account: HostAccount, settings: AgentSettings): Manifest[] {
  const { hub, authorities, token, homeApi } = settings;
  const name = agentName(account.hostId);
  const user = hostAccountName(account.hostId);
  const accessUser = settings.access ? accessAccountName(account.hostId) : "";
  const metadata = { name, namespace: SYSTEM_NAMESPACE, ...metadataOf(account) };
  const podLabels = { "app.kubernetes.io/name": name };
  const users = [user, accessUser].filter((each) => each !== "");
  const own = (resource: string, names: readonly string[], ...verbs: string[]): object => ({
    apiGroups: [""],
    resources: [resource],
    resourceNames: names,
    verbs,
  });
  const ofHost = { namespaceSelector: {}, podSelector: { matchLabels: { [HOST_LABEL]: account.hostId } } };
  const homeApiObjects = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: podLabels, ports: [{ name: "home-api", port: SERVICE_PORT, targetPort: "home-api" }] },
    },
    // The policy lets the host's own pods alone use the Service.
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
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    role("Role", metadata, [
      own("secrets", [name], "get", "patch"),
      own("serviceaccounts/token", users, "create"),
      ...(homeApi ? [own("services", [name], "get")] : []),
    ]),
    roleBinding("Role", metadata),
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      type: "Opaque",
      data: secretData({
        [AGENT_KEYS.hub]: hub,
        [AGENT_KEYS.cluster]: account.cluster,
        [AGENT_KEYS.account]: user,
        [AGENT_KEYS.accessAccount]: accessUser,
        [AGENT_KEYS.authorities]: authorities,
        [AGENT_KEYS.token]: token,
        // An earlier certificate may be for an earlier Cluster of the name.
        [AGENT_KEYS.cert]: "",
        [AGENT_KEYS.key]: "",
        [AGENT_KEYS.request]: "",
        [AGENT_KEYS.requestKey]: "",
      }),
    },
    ...(homeApi ? homeApiObjects : []),
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
          spec: podSpec(name, settings),
        },
      },
    },
  ];
}

function podSpec(name: string, { image, homeApi }: AgentSettings): object {
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
