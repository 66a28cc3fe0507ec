import { z } from "zod";
import { NODE_ADDRESS_TYPES } from "../../api/virtual-node.ts";
import { serverForMembers } from "../../controllers/home-api/address.ts";
import { lead } from "../../controllers/lead.ts";
import { NODE_PODS, type NodePods } from "../../controllers/virtual-node/model.ts";
import { renewable } from "../../kube/credentials.ts";
import { createClusterClient } from "../../kube/http-client.ts";
import { credentialsFromKubeconfigText, loadKubeConfig } from "../../kube/kubeconfig.ts";
import { NodeServers } from "../../kubelet/servers.ts";
import { NOT_PLACED_REASONS, type NotPlacedReason } from "../../pods/proxy-conditions.ts";
import { realClock } from "../../runtime/clock.ts";
import { serveHealth } from "../../telemetry/health.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { Failure } from "../failure.ts";
import { flag } from "../flag.ts";
import { duration, homeApiServer, listenAddress } from "../flags.ts";
import { type GlobalInput, withGlobals } from "../global-input.ts";
import { type KubeletInput, kubeletOf } from "../kubelet.ts";
import { checkPorts, listenAt } from "../listening.ts";
import type { Subcommand } from "../subcommand.ts";
import { TracedRequests } from "../traced-requests.ts";
import { openTraces } from "../traces.ts";

type Address = { readonly host: string; readonly port: number };

interface ControllerInput extends GlobalInput, KubeletInput {
  readonly healthListen?: Address | undefined;
  readonly identity?: string | undefined;
  readonly homeApiServer?: string | undefined;
  readonly leaseDuration: number;
  readonly podEvents: "all" | "warnings" | "none";
  readonly virtualNodePods: NodePods;
  readonly notPlacedReason: NotPlacedReason;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

// An ordinary pod has five events in its life; a hundred pods a second start and end with this.
const EVENT_LIMITS = { concurrency: 8, perSecond: 600, burst: 600 };

// Callers of the kubelet API are checked beside everything else, and however many they are, they do not hold it up.
const KUBELET_LIMITS = { concurrency: 8 };

// Without the host nothing goes on at all, so its queue may be long, and a slow connection is better than another one.
const HOST_LIMITS = { queueTimeoutMs: 60_000, connectTimeoutMs: 10_000 };

/** `legation controller` */
export const controllerCommand: Subcommand<ControllerInput> = {
  description:
    "Places proxies, keeps delegates and proxies alike, and represents each member by a virtual node. Several may run: " +
    "one leads, by a Lease in legation-system, and the others wait. Writes its log as JSON lines to standard output.",
  flags: [
    flag(
      "--kubelet-listen <address>",
      "where the virtual nodes' kubelet API listens, e.g. 127.0.0.1:10250: the first node on this port, the others on " +
        "the free ones after it (default: nowhere; kubectl logs, exec and port-forward do not work then)",
    ),
    flag(
      "--node-address <address>",
      "IP or DNS name at which the host's API server reaches it (default: the address it listens on, or POD_IP when that " +
        "is every address)",
    ),
    flag(
      "--node-address-type <type>",
      "what nodes call an IP address: InternalIP or ExternalIP (default: InternalIP; kind's network " +
        "wants a route to each node's InternalIP)",
    ),
    flag("--kubelet-cert-file <file>", "serve it with this certificate instead of its own; re-read when it changes"),
    flag("--kubelet-key-file <file>", "its private key"),
    flag(
      "--kubelet-certificate-signer <name>",
      "have this signer of the host's sign its certificate, e.g. kubernetes.io/kubelet-serving",
    ),
    flag(
      "--home-api-server <url>",
      "where pods in members find the host's API server, e.g. https://10.0.0.1:6443 " +
        "(default: the kubeconfig's or kubeadm's address, when other clusters can use it)",
    ),
    flag("--health-listen <address>", "where /livez, /readyz and /metrics listen (default: nowhere)"),
    flag(
      "--identity <name>",
      "its name in the Lease, unique among controllers; started anew under the same name it " +
        "leads again at once (default: host name and a random suffix)",
    ),
    flag(
      "--lease-duration <duration>",
      "how long others wait for a leader that has gone silent, 4s or more (default: 15s)",
    ),
    flag("--pod-events <which>", "events of delegates to tell on their proxies: all, warnings or none (default: all)"),
    flag(
      "--virtual-node-pods <which>",
      "pods that virtual nodes say can be allocated: none, so that no scheduler of the host chooses one or preempts pods " +
        "there, or members, for what counts them (Kueue's topology-aware scheduling) (default: none)",
    ),
    flag(
      "--not-placed-reason <reason>",
      "reason of the condition PodScheduled while no member can have a pod: NotPlaced, or Unschedulable, for which cluster " +
        "autoscalers of the host add nodes (default: NotPlaced)",
    ),
    flag("--log-level <level>", "debug, info, warn or error (default: info)"),
  ],
  examples: [
    ["controller --kubeconfig host.yaml", "outside a cluster"],
    ["controller --health-listen :8080", "in a cluster, with its service account"],
  ],
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
    identity: z.string().min(1).optional(),
    homeApiServer: homeApiServer.optional(),
    leaseDuration: duration
      .refine((ms) => ms >= 4_000, { error: "is too short for a Lease to be renewed in time; write 4s or more" })
      .default(15_000),
    podEvents: z.enum(["all", "warnings", "none"]).default("all"),
    virtualNodePods: z.enum(NODE_PODS).default("none"),
    notPlacedReason: z.enum(NOT_PLACED_REASONS).default("NotPlaced"),
    logLevel: z.enum(["debug", "info", "warn", "error"]).default("info"),
  })
    .refine(
      ({ kubeletCertFile, kubeletKeyFile }) => (kubeletCertFile === undefined) === (kubeletKeyFile === undefined),
      {
        error: "--kubelet-cert-file and --kubelet-key-file go together: write both or neither",
      },
    )
    .refine(
      ({ kubeletCertFile, kubeletCertificateSigner }) =>
        kubeletCertFile === undefined || kubeletCertificateSigner === undefined,
      {
        error: "--kubelet-certificate-signer and --kubelet-cert-file are two certificates: write one of them",
      },
    ),
  run: async (options, { env, signal }) => {
    const log = createLogger({ level: options.logLevel });
    const kubelet = kubeletOf(options, env);
    const metrics = new Metrics();
    const traces = await openTraces(env, "legation-controller", log);
    const requests = traces === undefined ? metrics : new TracedRequests(metrics, traces);
    const { kubeconfig, context } = options;
    const credentials = loadKubeConfig({
      env,
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...(context === undefined ? {} : { context }),
    });
    const homeServer = options.homeApiServer ?? serverForMembers(credentials);
    const userAgent = "legation";
    const electionClient = createClusterClient({ cluster: "host", userAgent, credentials, metrics });
    const { healthListen } = options;
    const health =
      healthListen === undefined
        ? undefined
        : await listenAt("--health-listen", healthListen, () =>
            serveHealth({ ...healthListen, metrics, notReady: () => undefined }),
          );
    try {
      if (kubelet !== undefined) await checkPorts("--kubelet-listen", kubelet.listen);
      const outcome = await lead(
        {
          electionClient,
          ...(options.identity === undefined ? {} : { identity: options.identity }),
          leaseDurationMs: options.leaseDuration,
          clock: realClock,
          log,
          onLeading: (leading) => metrics.setLeading(leading),
          controllers: (leaseLeftMs) => ({
            host: createClusterClient({
              cluster: "host",
              userAgent,
              credentials,
              metrics: requests,
              leaseLeftMs,
              limits: HOST_LIMITS,
            }),
            connect: (name, text) => {
              const read = (kubeconfig: string) =>
                credentialsFromKubeconfigText(kubeconfig, { allowExec: false, source: `Cluster ${name}`, env });
              const { credentials: current, renew } = renewable(read(text));
              return {
                server: current.server,
                client: createClusterClient({
                  cluster: name,
                  userAgent,
                  credentials: current,
                  metrics: requests,
                  leaseLeftMs,
                  untrusted: true,
                }),
                renew: (kubeconfig) => renew(read(kubeconfig)),
              };
            },
            ...(options.podEvents === "none"
              ? {}
              : {
                  podEvents: {
                    host: createClusterClient({
                      cluster: "host",
                      userAgent,
                      credentials,
                      metrics,
                      leaseLeftMs,
                      limits: EVENT_LIMITS,
                    }),
                    warningsOnly: options.podEvents === "warnings",
                    onOutcome: (outcome) => metrics.countPodEvent(outcome),
                  },
                }),
            ...(kubelet === undefined
              ? {}
              : {
                  kubelets: ({ registry, proxies, proxiesOn, ...context }) =>
                    new NodeServers({
                      ...kubelet,
                      ...context,
                      source: { registry, proxies, proxiesOn },
                      metrics,
                      host: createClusterClient({
                        cluster: "host",
                        userAgent,
                        credentials,
                        metrics,
                        limits: KUBELET_LIMITS,
                      }),
                    }),
                }),
            ...(homeServer === undefined ? {} : { homeApiServer: homeServer }),
            nodePods: options.virtualNodePods,
            notPlacedReason: options.notPlacedReason,
            metrics,
            traces,
          }),
        },
        signal,
      );
      if (outcome === "lost") {
        throw new Failure("failure", {
          object: "Lease legation-system/legation-controller",
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
};
