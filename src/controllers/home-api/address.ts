import { parse } from "yaml";
import { z } from "zod";
import type { Cluster } from "../../api/cluster.ts";
import { homeAddress, isLocalAddress } from "../../api/home-address.ts";
import { type ConfigMap, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { ClusterCredentials } from "../../kube/credentials.ts";
import { isKubeError } from "../../kube/errors.ts";
import { configMaps } from "../../kube/resources.ts";
import { CA_KEY, type HomeApi } from "../../pods/home-api.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { Logger } from "../../telemetry/logger.ts";

// The root-ca-cert-publisher of kube-controller-manager keeps one in every namespace.
const ROOT_CA = { namespace: "kube-system", name: "kube-root-ca.crt" };
// Where kubeadm keeps the address at which nodes join.
const CLUSTER_INFO = { namespace: "kube-public", name: "cluster-info" };

const PATIENCE_MS = 5_000;

/** Where pods of the members find the host's API server, and who vouches for it. */
export class HomeAddresses {
  readonly #server: string | undefined;
  readonly #rootCa: Reflector<ConfigMap>;
  readonly #clock: Clock;

  constructor(options: {
    readonly host: ClusterClient;
    /** The address for members whose Cluster names none. */
    readonly server: string | undefined;
    /** Something that was being found out is known now. */
    readonly onChange: () => void;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    const { host: client, server, onChange, clock, log } = options;
    this.#server = server;
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
    // That there is no such ConfigMap is no event.
    void this.#rootCa.whenSynced().then(onChange);
  }

  /** Resolves when the host's authority is known, or is not to be had soon: nothing else shall wait for it. */
  async start(signal: AbortSignal): Promise<void> {
    this.#rootCa.start();
    const enough = new AbortController();
    const patience = this.#clock.after(PATIENCE_MS, () => enough.abort());
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

  /** The way from a member to the host's API server. */
  of(cluster: Stored<Cluster>): HomeApi {
    const { name } = cluster.metadata;
    const server = cluster.spec.homeAPI?.server ?? this.#server;
    const address = server === undefined ? undefined : homeAddress(server);
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

  /** PEM of who vouches for the host's API server; undefined when it is not known, or what is written is none. */
  authority({ spec }: Cluster): string | undefined {
    const { certificateAuthorityData } = spec.homeAPI ?? {};
    const text =
      certificateAuthorityData === undefined
        ? this.#rootCa.store.get(objectKey(ROOT_CA))?.data?.[CA_KEY]
        : Buffer.from(certificateAuthorityData, "base64").toString("utf8");
    return text?.includes("BEGIN CERTIFICATE") === true ? text : undefined;
  }
}

/**
 * The address that Legation itself uses for the host, when other clusters may use it, too: undefined in a cluster, for a
 * loopback address, and where a pod could not do what the kubeconfig says (a proxy, another name in the certificate).
 */
export function serverForMembers(credentials: ClusterCredentials): string | undefined {
  const { server, clusterName, proxyUrl, tlsServerName, insecureSkipTlsVerify } = credentials;
  // In a cluster there is no kubeconfig, and the address is a Service's.
  if (clusterName === undefined || proxyUrl !== undefined || tlsServerName !== undefined || insecureSkipTlsVerify) {
    return undefined;
  }
  return forMembers(server);
}

const clusterInfo = z.looseObject({
  clusters: z.tuple([z.looseObject({ cluster: z.looseObject({ server: z.string() }) })]),
});

/** The address that kubeadm has published for nodes; undefined where there is none. */
export async function publishedServer(host: ClusterClient, signal: AbortSignal): Promise<string | undefined> {
  let found: ConfigMap | undefined;
  try {
    found = await host.find(configMaps, CLUSTER_INFO, { signal });
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
  }
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
