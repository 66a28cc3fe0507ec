import { mutatingConfigurations } from "../../../webhook/ca-bundle.ts";
import { API_SERVICE, apiServices } from "../../access/api-service.ts";
import { ACCESS_NAMESPACE } from "../../api/access.ts";
import { HELM, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { RELAY_NAMESPACE } from "../../api/relay.ts";
import { recordedHost } from "../../clusters/host-name.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { deployments, serviceAccounts, services } from "../../kube/resources.ts";
import { imageOf, shardsOf, VERSION_LABEL } from "../shared/deployment-image.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import { ACCESS_SERVICE } from "./objects.ts";

/** Settings of an earlier installation, which the next one keeps. */
export interface InstalledSettings {
  readonly clusterName: string | undefined;
  readonly network?: string | undefined;
  /** Version of the command line that installed it. Undefined if unknown. */
  readonly version: string | undefined;
  readonly webhookUrl: string | undefined;
  /** The installed access to members; `address` if its server is outside the cluster. */
  readonly access: { readonly address?: string } | undefined;
  /** Reports whether Services are relayed. */
  readonly relay: boolean;
  /** Reports whether Legation implements the Multi-Cluster Services API. */
  readonly mcs: boolean;
  readonly shards: number;
  /** The installed image, if its repository is not the manifests'. */
  readonly ownImage: string | undefined;
  readonly helmRelease?: HelmRelease | undefined;
}

export interface HelmRelease {
  readonly name: string;
  readonly namespace: string;
}

const RELAY_ACCOUNT = { namespace: RELAY_NAMESPACE, name: "legation-relay" };

export async function standing(
  client: ClusterClient,
  manifests: readonly Manifest[],
  signal: AbortSignal,
): Promise<InstalledSettings> {
  const name = manifests.find(({ kind }) => kind === mutatingConfigurations.kind)?.metadata.name;
  const webhook = name === undefined ? undefined : await client.find(mutatingConfigurations, { name }, { signal });
  const url = webhook?.webhooks?.[0]?.clientConfig.url;
  const manifest = manifests.find(({ kind }) => kind === deployments.kind);
  const ref = { namespace: SYSTEM_NAMESPACE, name: manifest?.metadata.name ?? "" };
  const installed = manifest === undefined ? undefined : await client.find(deployments, ref, { signal });
  const [image, published] = [imageOf(installed), imageOf(manifest)];
  const isOwn = image !== undefined && published !== undefined && repositoryOf(image) !== repositoryOf(published);
  const { name: clusterName, network, mcs } = await recordedHost(client, signal);
  return {
    clusterName,
    network,
    version: installed?.metadata.labels?.[VERSION_LABEL],
    webhookUrl: url === undefined ? undefined : new URL(url).origin,
    access: await standingAccess(client, signal),
    relay: (await client.find(serviceAccounts, RELAY_ACCOUNT, { signal })) !== undefined,
    mcs,
    shards: shardsOf(installed),
    ownImage: isOwn ? image : undefined,
    helmRelease: webhook === undefined ? undefined : helmReleaseOf(webhook),
  };
}

// Helm sets the label and both annotations on each object of a release: https://helm.sh/docs/chart_best_practices/labels.
// Argo CD only renders the chart, so its objects lack the annotations.
function helmReleaseOf({ metadata }: KubeObject): HelmRelease | undefined {
  if (metadata?.labels?.[MANAGED_BY_LABEL] !== HELM) return undefined;
  const { annotations = {} } = metadata;
  const namespace = annotations["meta.helm.sh/release-namespace"] ?? SYSTEM_NAMESPACE;
  return { name: annotations["meta.helm.sh/release-name"] ?? "legation", namespace };
}

/** Refuses to change a Helm release's objects: its next upgrade would change them back. */
export function refuseBesideHelm({ name, namespace }: HelmRelease): never {
  throw new Failure("refused", {
    object: "Legation",
    problem: `is installed by the Helm release ${name} in namespace ${namespace}`,
    remedy:
      `run \`helm upgrade ${name} CHART --namespace ${namespace}\` instead, or \`helm uninstall ${name} --namespace ` +
      `${namespace}\` first: new pods then run on the host's own nodes, and delegated pods are evicted after about five ` +
      "minutes without Legation; `--types` alone is allowed",
  });
}

async function standingAccess(client: ClusterClient, signal: AbortSignal): Promise<InstalledSettings["access"]> {
  if ((await client.find(apiServices, { name: API_SERVICE }, { signal })) === undefined) return undefined;
  const service = await client.find(services, { namespace: ACCESS_NAMESPACE, name: ACCESS_SERVICE }, { signal });
  const { externalName, ports: [port] = [] } = service?.spec ?? {};
  return externalName === undefined || port === undefined ? {} : { address: `${externalName}:${port.port}` };
}

/** Returns the image to keep. Undefined: the manifests'. Throws `Failure` for an own image of another version. */
export function imageToKeep({ ownImage, version }: InstalledSettings, ownVersion: string): string | undefined {
  if (ownImage === undefined || version === ownVersion) return ownImage;
  throw new Failure("usage", {
    object: "--image",
    problem: `is missing: the cluster runs ${ownImage}, which is ${version === undefined ? "of another installation" : `version ${version}`}, and this is ${ownVersion}`,
    remedy: "write --image IMAGE with an image of this version",
  });
}

function repositoryOf(image: string): string {
  return image.replace(/@.*$/, "").replace(/:[^/:]*$/, "");
}
