import { DELEGATE_ANNOTATION, RELAY_ANNOTATION } from "../../../src/api/keys.ts";
import type { ObjectMeta, Pod, PodSpec, Service, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods, services } from "../../../src/kube/resources.ts";
import { conditionOf } from "../../../src/pods/pod-state.ts";
import { NODE_IMAGES } from "../clusters/node/config.ts";
import { freePort } from "../clusters/ports.ts";
import { startClusters } from "../clusters/start.ts";
import type { Cluster } from "../clusters/types.ts";
import { afterFile } from "../harness/after-file.ts";
import { clientOf } from "../harness/clients.ts";
import { kubectl } from "../harness/kubectl.ts";
import { podThat } from "../harness/pods-of.ts";
import { runMemberRelay, runRelay } from "../legation/relay.ts";
import { startLegation } from "../legation/start.ts";

type Labels = Record<string, string>;
type Port = NonNullable<NonNullable<Service["spec"]>["ports"]>[number];

const PATIENT = { timeoutMs: 180_000 };

/** A host with real pods, among them the relay, and a member behind an agent whose pods no network reaches. Both have kube-proxy and CoreDNS. */
export class RelayedClusters {
  readonly host: Cluster;
  readonly west: Cluster;
  readonly client: ClusterClient;

  constructor(host: Cluster, west: Cluster) {
    this.host = host;
    this.west = west;
    this.client = clientOf(host);
    afterFile(() => this.client.close());
  }

  /** Runs a pod on the host, or in the member, and waits until it is ready. */
  async run(
    where: "host" | "west",
    {
      namespace,
      name,
      ...spec
    }: { readonly namespace: string; readonly name: string } & Partial<PodSpec["containers"][number]>,
    more: Partial<PodSpec> = {},
  ): Promise<Stored<Pod>> {
    const annotations = where === "host" ? {} : { [DELEGATE_ANNOTATION]: "true" };
    const container = { image: NODE_IMAGES[0], ...spec, name: "main" };
    await this.client.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace, name, labels: { app: name }, annotations },
      spec: { terminationGracePeriodSeconds: 1, automountServiceAccountToken: false, containers: [container], ...more },
    });
    return podThat(this.client, namespace, name, (pod) => conditionOf(pod, "Ready")?.status === "True", PATIENT);
  }

  /** Makes a Service, by default of the pod with its name, and `far-NAME`, which leads there by the relay. */
  async relay(
    namespace: string,
    name: string,
    ports: readonly Port[],
    selector: Labels = { app: name },
  ): Promise<void> {
    const make = (metadata: ObjectMeta, spec: NonNullable<Service["spec"]>): Promise<unknown> =>
      this.client.create(services, { apiVersion: "v1", kind: "Service", metadata: { namespace, ...metadata }, spec });
    await make({ name }, { selector, ports: [...ports] });
    // The relayed Service has the ports of the other one, by number.
    const far = ports.map(({ targetPort: _, ...port }) => port);
    await make({ name: `far-${name}`, annotations: { [RELAY_ANNOTATION]: name } }, { ports: far });
  }

  /** Runs a command in a pod of the host, with standard input if there is any. */
  exec(namespace: string, name: string, command: readonly string[], input?: string): Promise<string> {
    const args = ["exec", "-n", namespace, ...(input === undefined ? [] : ["-i"]), name, "--", ...command];
    return kubectl(this.host, args, { timeoutMs: 240_000, ...(input === undefined ? {} : { input }) });
  }
}

/** Starts them until the end of a file that calls `cleanUpFile`. */
export async function startRelayedClusters(): Promise<RelayedClusters> {
  const real = { realNode: true, serviceNetwork: "alone" } as const;
  const clusters = await startClusters({
    names: ["host", "west"],
    clusters: { host: real, west: real },
    onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
  });
  afterFile(() => clusters.stop());
  const [host, west] = [clusters.get("host"), clusters.get("west")];
  const port = await freePort();
  const running = await startLegation({
    host,
    members: { west },
    agents: new Map([["west", port]]),
    controllerFlags: [`--hub-listen=127.0.0.1:${port}`],
    restart: true,
  });
  afterFile(() => running.stop());
  await runRelay(host);
  await runMemberRelay(host, west);
  return new RelayedClusters(host, west);
}
