import { parse } from "yaml";
import { z } from "zod";
import type { Cluster } from "../../api/cluster.ts";
import { homeAddress, isLocalAddress } from "../../api/home-address.ts";
import { type ConfigMap, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { ClusterCredentials } from "../../kube/credentials.ts";
import { ignoring } from "../../kube/errors.ts";
import { configMaps } from "../../kube/resources.ts";
import { CA_KEY, type HomeApi } from "../../pods/home-api.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Logger } from "../../telemetry/logger.ts";

// The root-ca-cert-publisher of kube-controller-manager keeps this ConfigMap in every namespace.
const ROOT_CA = { namespace: "kube-system", name: "kube-root-ca.crt" };
const CLUSTER_INFO = { namespace: "kube-public", name: "cluster-info" };

// The certificate of every API server has this name, which pods resolve to the agent's Service.
const THROUGH_AGENT = { host: "kubernetes.default.svc", port: "443" };

const ADDRESS_PATIENCE_MS = 5_000;

/** The address of the host's API server for pods in members, and its certificate authority. */
export class HomeAddresses {
  readonly #server: string | undefined;
  readonly #agentAddress: (cluster: string) => string | undefined;
  readonly #rootCa: Reflector<ConfigMap>;
  readonly #clock: Clock;

  constructor(options: {
    readonly host: ClusterClient;
    /** Address for members whose Cluster names none. */
    readonly server: string | undefined;
    /** Returns the IP address at which pods of a cluster reach the host through its agent. Undefined while it has told none. */
    readonly agentAddress: (cluster: string) => string | undefined;
    readonly onChange: () => void;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    const { host: client, server, agentAddress, onChange, clock, log } = options;
    this.#server = server;
    this.#agentAddress = agentAddress;
    this.#clock = clock;
    this.#rootCa = new Reflector({
      client,
      resource: configMaps,
      namespace: ROOT_CA.namespace,
      fieldSelector: `metadata.name=${ROOT_CA.name}`,
      clock,
      log,
      onEvent: onChange,
    });
    // No event tells that there is no such ConfigMap.
    void this.#rootCa.whenSynced().then(onChange);
  }

  /** Does not wait for what cannot be read soon: no other part waits for it. */
  async start(signal: AbortSignal): Promise<void> {
    this.#rootCa.start();
    const enough = new AbortController();
    const patience = this.#clock.after(ADDRESS_PATIENCE_MS, () => enough.abort());
    try {
      await this.#rootCa.whenSynced(AbortSignal.any([signal, enough.signal]));
    } catch {
      signal.throwIfAborted();
    } finally {
      patience.cancel();
    }
  }

  async stop(): Promise<void> {
    await this.#rootCa.stop();
  }

  of(cluster: Stored<Cluster>): HomeApi {
    const { name } = cluster.metadata;
    const { homeAPI, agent } = cluster.spec;
    const isThroughAgent = homeAPI === undefined && agent?.homeAPI === true;
    const ip = isThroughAgent ? this.#agentAddress(name) : undefined;
    if (isThroughAgent && ip === undefined) {
      const message =
        "its agent has not told yet where pods reach the host's API server through it; if this lasts, look at the agent's log, " +
        `or run \`legation join ${name} --agent --home-api-through-agent\` again`;
      return { state: "pending", message };
    }
    const server = homeAPI?.server ?? this.#server;
    const direct = server === undefined ? undefined : homeAddress(server);
    const address = ip === undefined ? direct : { ...THROUGH_AGENT, ip };
    if (address === undefined) {
      const message =
        "its pods have no known way to the host's API server; write its address, e.g. https://10.0.0.1:6443, to " +
        `spec.homeAPI.server of Cluster ${name}, or give it to the controller with --home-api-server`;
      return { state: "unknown", message };
    }
    if (this.authority(cluster) !== undefined) return { state: "known", address };
    if (cluster.spec.homeAPI?.certificateAuthorityData !== undefined) {
      const message = `spec.homeAPI.certificateAuthorityData of Cluster ${name} is not the base64 of a PEM certificate`;
      return { state: "unknown", message };
    }
    const what = `ConfigMap ${ROOT_CA.namespace}/${ROOT_CA.name}, which vouches for the host's API server,`;
    return this.#rootCa.store.synced
      ? { state: "unknown", message: `${what} has no certificate` }
      : { state: "pending", message: `${what} is still being read` };
  }

  /** Returns undefined if the authority is unknown or no PEM. */
  authority({ spec }: Cluster): string | undefined {
    const { certificateAuthorityData } = spec.homeAPI ?? {};
    if (certificateAuthorityData === undefined) return this.hostAuthority();
    return certificate(Buffer.from(certificateAuthorityData, "base64").toString("utf8"));
  }

  /** Returns the authority that the host publishes for its API server. */
  hostAuthority(): string | undefined {
    return certificate(this.#rootCa.store.get(objectKey(ROOT_CA))?.data?.[CA_KEY]);
  }
}

function certificate(text: string | undefined): string | undefined {
  return text?.includes("BEGIN CERTIFICATE") === true ? text : undefined;
}

/** Returns the address that Legation itself uses, if pods in other clusters can use it, too. */
export function serverForMembers(credentials: ClusterCredentials): string | undefined {
  const { server, clusterName, proxyUrl, tlsServerName, insecureSkipTlsVerify } = credentials;
  // Inside a cluster there is no kubeconfig, and the address is a Service's.
  if (clusterName === undefined || proxyUrl !== undefined || tlsServerName !== undefined || insecureSkipTlsVerify) {
    return undefined;
  }
  return forMembers(server);
}

const clusterInfo = z.looseObject({
  clusters: z.tuple([z.looseObject({ cluster: z.looseObject({ server: z.string() }) })]),
});

export async function publishedServer(host: ClusterClient, signal: AbortSignal): Promise<string | undefined> {
  const found = await ignoring(host.find(configMaps, CLUSTER_INFO, { signal }), "Forbidden");
  const text = found?.data?.kubeconfig;
  if (text === undefined) return undefined;
  let document: unknown;
  try {
    document = parse(text);
  } catch {
    return undefined;
  }
  const parsed = clusterInfo.safeParse(document);
  return parsed.success ? forMembers(parsed.data.clusters[0].cluster.server) : undefined;
}

function forMembers(server: string): string | undefined {
  const address = homeAddress(server);
  return address === undefined || isLocalAddress(address) ? undefined : server;
}
