import { isIPv6 } from "node:net";
import { z } from "zod";
import { NODE_ADDRESS_TYPES, type NodeAddressType } from "../../api/virtual-node.ts";
import type { MemberConnection } from "../../clusters/registry.ts";
import type { AgentConnection } from "../../controllers/agents/controller.ts";
import type { HubServing } from "../../controllers/agents/hub-keeper.ts";
import { serverForMembers } from "../../controllers/home-api/address.ts";
import { type RunShardsOptions, runShards } from "../../controllers/run-shards.ts";
import { NODE_PODS } from "../../controllers/virtual-node/model.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { type ClusterCredentials, renewable } from "../../kube/credentials.ts";
import type { Environment } from "../../kube/environment-proxy.ts";
import { type ConnectOptions, createClusterClient } from "../../kube/http-client.ts";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../../kube/kubeconfig.ts";
import { NodeServers, type ServersOptions } from "../../kubelet/servers.ts";
import type { KubeletCertificate } from "../../kubelet/serving-certificate.ts";
import { NOT_PLACED_REASONS } from "../../pods/proxy-conditions.ts";
import { realClock } from "../../runtime/clock.ts";
import { uniqueIdentity } from "../../runtime/leader-election.ts";
import { createLogger, type Logger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import type { DialTarget } from "../../tunnel/dialled.ts";
import { Hub } from "../../tunnel/hub.ts";
import { hostOfAddress } from "../../tunnel/hub-address.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { Failure } from "../shared/failure.ts";
import {
  duration,
  flagRules,
  homeApiServer,
  listenAddress,
  SHARDS_FLAG,
  shards,
  withGlobals,
} from "../shared/input.ts";
import { checkPorts, type ListenAddress, serveHealthAt } from "../shared/listening.ts";
import { LOG_LEVEL_FLAG, logLevel } from "../shared/serving-flags.ts";
import { openTraces, tracedRequests } from "../shared/traces.ts";

export interface KubeletInput {
  readonly kubeletListen?: ListenAddress | undefined;
  readonly nodeAddress?: string | undefined;
  readonly nodeAddressType?: NodeAddressType | undefined;
  readonly kubeletCertFile?: string | undefined;
  readonly kubeletKeyFile?: string | undefined;
  readonly kubeletCertificateSigner?: string | undefined;
}

const WILDCARDS: ReadonlySet<string> = new Set(["::", "0.0.0.0"]);

/** Returns the address at which others reach a server that listens there. Undefined if neither the flag nor POD_IP tells one. */
function addressOf({ host }: ListenAddress, { POD_IP: podIp }: Environment): string | undefined {
  return (WILDCARDS.has(host) ? podIp : host) || undefined;
}

export function kubeletOf(
  input: KubeletInput,
  env: Environment,
): Pick<ServersOptions, "listen" | "address" | "addressType" | "certificate"> | undefined {
  const { kubeletListen: listen, nodeAddress, nodeAddressType: addressType } = input;
  if (listen === undefined) return undefined;
  const address = nodeAddress ?? addressOf(listen, env);
  if (address === undefined) {
    throw new Failure("usage", {
      object: "legation controller",
      problem: "--kubelet-listen is every address, which tells the host's API server none",
      remedy: "write --node-address with the IP or DNS name at which it reaches this process",
    });
  }
  const { kubeletCertFile: certFile, kubeletKeyFile: keyFile, kubeletCertificateSigner: signer } = input;
  const hosts = [address];
  const own: KubeletCertificate = signer === undefined ? { kind: "own", hosts } : { kind: "signer", signer, hosts };
  const areGiven = certFile !== undefined && keyFile !== undefined;
  return { listen, address, addressType, certificate: areGiven ? { kind: "files", certFile, keyFile } : own };
}

// A pod has about five events in its life. These limits suffice for a hundred pods a second.
const EVENT_LIMITS = { concurrency: 8, perSecond: 600, burst: 600 };

// Authorizes callers of the kubelet API on a client of its own, so that they never delay the controllers.
const KUBELET_LIMITS = { concurrency: 8 };

// Nothing works without the host, so its queue may be long, and a slow connection beats a new one.
const HOST_LIMITS = { queueTimeoutMs: 60_000, connectTimeoutMs: 10_000 };

const USER_AGENT = "legation";

type MemberOptions = Pick<ConnectOptions, "metrics" | "leaseLeftMs"> & {
  readonly env: Environment;
  readonly agent: AgentConnection | undefined;
};

function connectMember(cluster: string, text: string, { env, agent, ...options }: MemberOptions): MemberConnection {
  const read = (kubeconfig: string): ClusterCredentials =>
    credentialsFromKubeconfigText(kubeconfig, { allowExec: false, source: `Cluster ${cluster}`, env });
  const { credentials, renew } = renewable(read(text));
  const refresh = (): void => {
    credentials.refresh();
    agent?.onUselessCredentials();
  };
  const connection = { cluster, userAgent: USER_AGENT, credentials: { ...credentials, refresh }, untrusted: true };
  return {
    server: credentials.server,
    client: createClusterClient({ ...connection, dial: agent?.dial, ...options }),
    renew: (kubeconfig) => renew(read(kubeconfig)),
  };
}

/** Returns where the hub connects for pods of members. Undefined where this process needs a proxy, which pods cannot use. */
function homeApiTarget({ server, proxyUrl, environmentProxyUrl }: ClusterCredentials): DialTarget | undefined {
  const { host, port } = new URL(server);
  if (proxyUrl !== undefined || environmentProxyUrl !== undefined) return undefined;
  return { host: hostOfAddress(host), port: Number(port || 443) };
}

function hubOf(
  hubListen: ListenAddress | undefined,
  hubService: string | undefined,
  { env, homeApi, log }: { readonly env: Environment; readonly homeApi: DialTarget | undefined; readonly log: Logger },
): HubServing | undefined {
  if (hubListen === undefined) return undefined;
  const { host, port } = hubListen;
  const address = addressOf(hubListen, env);
  if (hubService !== undefined && address === undefined) {
    throw new Failure("usage", {
      object: "legation controller",
      problem: "--hub-service needs an address for its endpoint, and --hub-listen is every address",
      remedy: "set POD_IP to the pod's address, or write --hub-listen with an address",
    });
  }
  return {
    open: async (tls, gatekeeper, onChange) => {
      const hub = new Hub(tls, gatekeeper, { onChange, homeApi, clock: realClock, log });
      await hub.listen(host, port);
      return hub;
    },
    endpoint: hubService === undefined || address === undefined ? undefined : { service: hubService, address, port },
    address: address === undefined ? undefined : `${isIPv6(address) ? `[${address}]` : address}:${port}`,
  };
}

export const command: Equip = equipped({
  description:
    "Places proxies, keeps delegates and proxies alike, and represents each member by a virtual node. Several may run: " +
    "one leads, by a Lease in legation-system, and the others wait, or each leads some of --shards. Writes its log as JSON lines to standard output.",
  flags: [
    ...flags({
      "--kubelet-listen <address>":
        "where the virtual nodes' kubelet API listens, e.g. 127.0.0.1:10250: the first node on this port, the others on " +
        "the free ones after it (default: nowhere; kubectl logs, exec and port-forward do not work then)",
      "--node-address <address>":
        "IP or DNS name at which the host's API server reaches it (default: the address it listens on, or POD_IP when that " +
        "is every address)",
      "--node-address-type <type>":
        "what nodes call an IP address: InternalIP or ExternalIP (default: InternalIP; kind's network " +
        "wants a route to each node's InternalIP)",
      "--kubelet-cert-file <file>": "serve it with this certificate instead of its own; re-read when it changes",
      "--kubelet-key-file <file>": "its private key",
      "--kubelet-certificate-signer <name>":
        "have this signer of the host's sign its certificate, e.g. kubernetes.io/kubelet-serving",
      "--home-api-server <url>":
        "where pods in members find the host's API server, e.g. https://10.0.0.1:6443 " +
        "(default: the kubeconfig's or kubeadm's address, when other clusters can use it)",
      "--hub-listen <address>":
        "where agents of members connect that cannot be reached, e.g. :8132; only the leader listens (default: nowhere)",
      "--hub-service <name>":
        "Service without a selector in legation-system, whose endpoint the leader is (default: none)",
      "--health-listen <address>": "where /livez, /readyz and /metrics listen (default: nowhere)",
      "--identity <name>":
        "its name in the Lease, unique among controllers; started anew under the same name it " +
        "leads again at once (default: host name and a random suffix)",
      "--lease-duration <duration>":
        "how long others wait for a leader that has gone silent, 4s or more (default: 15s)",
      "--pod-events <which>": "events of delegates to tell on their proxies: all, warnings or none (default: all)",
      "--virtual-node-pods <which>":
        "pods that virtual nodes say can be allocated: none, so that no scheduler of the host chooses one or preempts pods " +
        "there, or members, for what counts them (Kueue's topology-aware scheduling) (default: none)",
      "--not-placed-reason <reason>":
        "reason of the condition PodScheduled while no member can have a pod: NotPlaced, or Unschedulable, for which cluster " +
        "autoscalers of the host add nodes (default: NotPlaced)",
    }),
    SHARDS_FLAG,
    LOG_LEVEL_FLAG,
  ],
  examples: {
    "controller --kubeconfig host.yaml": "outside a cluster",
    "controller --health-listen :8080": "in a cluster, with its service account",
  },
  input: withGlobals({
    kubeletListen: listenAddress.optional(),
    nodeAddress: z.string().min(1).optional(),
    nodeAddressType: z.enum(NODE_ADDRESS_TYPES).optional(),
    kubeletCertFile: z.string().min(1).optional(),
    kubeletKeyFile: z.string().min(1).optional(),
    kubeletCertificateSigner: z
      .string()
      .regex(/^[^/\s]+\/[^/\s]+$/, {
        error: "is no signer's name; write DOMAIN/NAME, e.g. kubernetes.io/kubelet-serving",
      })
      .optional(),
    healthListen: listenAddress.optional(),
    hubListen: listenAddress.optional(),
    hubService: z.string().min(1).optional(),
    identity: z.string().min(1).optional(),
    homeApiServer: homeApiServer.optional(),
    leaseDuration: duration
      .refine((ms) => ms >= 4_000, { error: "is too short for a Lease to be renewed in time; write 4s or more" })
      .default(15_000),
    podEvents: z.enum(["all", "warnings", "none"]).default("all"),
    virtualNodePods: z.enum(NODE_PODS).default("none"),
    notPlacedReason: z.enum(NOT_PLACED_REASONS).default("NotPlaced"),
    shards: shards.default(1),
    logLevel,
  }).superRefine(
    flagRules({
      needs: { kubeletCertFile: "kubeletKeyFile", kubeletKeyFile: "kubeletCertFile", hubService: "hubListen" },
      excludes: { kubeletCertificateSigner: "kubeletCertFile" },
    }),
  ),
  run: async (options, { env, signal }) => {
    const log = createLogger({ level: options.logLevel });
    const kubelet = kubeletOf(options, env);
    const metrics = new Metrics();
    const traces = await openTraces(env, "legation-controller", log);
    const requests = traces === undefined ? metrics : tracedRequests(metrics, traces);
    const { kubeconfig, context, identity = uniqueIdentity(), hubListen, leaseDuration: leaseDurationMs } = options;
    const credentials = loadKubeConfig({ env, kubeconfig, context });
    const hostClient = (more: Partial<ConnectOptions> = {}): ClusterClient =>
      createClusterClient({ cluster: "host", userAgent: USER_AGENT, credentials, metrics, ...more });
    const electionClient = hostClient();
    const health = await serveHealthAt("--health-listen", options.healthListen, metrics);
    const controllers = (leaseLeftMs: () => number | undefined): ReturnType<RunShardsOptions["controllers"]> => ({
      host: hostClient({ metrics: requests, leaseLeftMs, limits: HOST_LIMITS }),
      connect: (name, text, agent) => connectMember(name, text, { env, metrics: requests, leaseLeftMs, agent }),
      hub: hubOf(hubListen, options.hubService, { env, homeApi: homeApiTarget(credentials), log }),
      podEvents:
        options.podEvents === "none"
          ? undefined
          : {
              host: hostClient({ leaseLeftMs, limits: EVENT_LIMITS }),
              warningsOnly: options.podEvents === "warnings",
              onOutcome: (outcome) => metrics.countPodEvent(outcome),
            },
      kubelets:
        kubelet === undefined
          ? undefined
          : ({ registry, proxies, proxiesOn, shard, ...rest }) =>
              new NodeServers({
                ...kubelet,
                ...rest,
                source: { registry, proxies, proxiesOn, shard },
                metrics,
                host: hostClient({ limits: KUBELET_LIMITS }),
              }),
      homeApiServer: options.homeApiServer ?? serverForMembers(credentials),
      nodePods: options.virtualNodePods,
      notPlacedReason: options.notPlacedReason,
      metrics,
      traces,
    });
    try {
      if (kubelet !== undefined) await checkPorts("--kubelet-listen", kubelet.listen);
      if (hubListen !== undefined) await checkPorts("--hub-listen", hubListen);
      metrics.setShards(options.shards);
      const leading = { electionClient, identity, leaseDurationMs, clock: realClock, log, controllers };
      const onLeading = (held: number): void => metrics.setLeading(held);
      const outcome = await runShards({ ...leading, count: options.shards, onLeading }, signal);
      if (outcome === "lost") {
        throw new Failure("failure", {
          object: options.shards === 1 ? "Lease legation-system/legation-controller" : "the Lease of a shard",
          problem: "another controller holds it, or it could not be renewed in time",
          remedy: "start the controller again: it waits until it may lead",
        });
      }
    } finally {
      await health?.close();
      await electionClient.close();
      await traces?.close();
    }
  },
});
