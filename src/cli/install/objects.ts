import { z } from "zod";
import { apiServices } from "../../access/api-service.ts";
import { ACCESS_NAMESPACE } from "../../api/access.ts";
import { INSTALLED_LABELS, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { HOST_CONFIG_NAME, HOST_MCS_KEY, HOST_NAME_KEY, HOST_NETWORK_KEY } from "../../clusters/host-name.ts";
import { type Container, deploymentSpec, shardsArguments, VERSION_LABEL } from "../shared/deployment-image.ts";
import type { Manifest } from "../shared/manifests.ts";

const labelMap = z.record(z.string(), z.string()).default({});

export interface InstallOptions {
  /** Address of a webhook outside the cluster. Undefined if it runs in the cluster. */
  readonly webhookUrl?: string | undefined;
  /** `HOST:PORT` of a `legation access` outside the cluster. Undefined if it runs in the cluster, or not at all. */
  readonly accessAddress?: string | undefined;
  /** Image of Legation's processes in the cluster. Undefined: the manifests'. */
  readonly image?: string | undefined;
  /** Name of the host, as shown in members. */
  readonly clusterName: string;
  /** Network of the host's pods. Undefined: none that a member is in. */
  readonly network?: string | undefined;
  /** Legation implements the Multi-Cluster Services API in joined networks. */
  readonly mcs: boolean;
  readonly shards: number;
  readonly version: string;
}

export interface InstallPlan {
  /** Objects in the order in which they must be applied. */
  readonly apply: readonly Manifest[];
  /** Objects of the manifests that this kind of installation does without. */
  readonly leaveOut: readonly Manifest[];
}

// A kind follows the kinds that it needs. Webhook configurations and policies come last, since they refuse pods at once.
const ORDER: readonly string[] = [
  "CustomResourceDefinition",
  "Namespace",
  "ServiceAccount",
  "ClusterRole",
  "Role",
  "ClusterRoleBinding",
  "RoleBinding",
  "ConfigMap",
  "Secret",
  "ResourceQuota",
  "Service",
  "PodDisruptionBudget",
  "Deployment",
  "*",
  "ValidatingAdmissionPolicy",
  "ValidatingAdmissionPolicyBinding",
  "ValidatingWebhookConfiguration",
  "MutatingWebhookConfiguration",
];

export const ACCESS_SERVICE = "legation-access";

const IN_CLUSTER_KINDS = new Set(["Deployment", "Service", "PodDisruptionBudget", "ResourceQuota"]);
const WEBHOOK_KINDS = new Set(["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]);

export function planInstall(manifests: readonly Manifest[], options: InstallOptions): InstallPlan {
  const leaveOut = manifests.filter((manifest) => runsOutside(manifest, options));
  const apply = manifests
    .filter((manifest) => !leaveOut.includes(manifest))
    .map((manifest) => adjust(manifest, options))
    .concat(hostConfig(options))
    .map(labelled)
    .sort((a, b) => position(a.kind) - position(b.kind));
  return { apply, leaveOut };
}

/** Reports whether an object is only for a process in the cluster that this installation has outside. */
function runsOutside({ kind, metadata }: Manifest, { webhookUrl, accessAddress }: InstallOptions): boolean {
  if (!IN_CLUSTER_KINDS.has(kind)) return false;
  // Outside, the Service says where: API servers call aggregated APIs by Services alone.
  if (metadata.namespace === ACCESS_NAMESPACE) return accessAddress !== undefined && kind !== "Service";
  return webhookUrl !== undefined;
}

function position(kind: string): number {
  const index = ORDER.indexOf(kind);
  return index === -1 ? ORDER.indexOf("*") : index;
}

function adjust(manifest: Manifest, options: InstallOptions): Manifest {
  if (WEBHOOK_KINDS.has(manifest.kind)) return withClientConfig(manifest, options.webhookUrl);
  if (manifest.metadata.name === ACCESS_SERVICE && manifest.kind === "Service") {
    return withAddress(manifest, options.accessAddress);
  }
  if (manifest.kind === apiServices.kind) return withPort(manifest, options.accessAddress);
  if (manifest.kind !== "Deployment") return manifest;
  const { metadata } = manifest;
  // Version and image are one write, so that an interruption cannot separate the two.
  const labels = { ...labelMap.parse(metadata.labels), [VERSION_LABEL]: options.version };
  const versioned = withPodVersion({ ...manifest, metadata: { ...metadata, labels } }, options.version);
  return withContainers(versioned, ({ args = [], ...container }) => ({
    ...container,
    ...(options.image === undefined ? {} : { image: options.image }),
    args: SHARDED.has(metadata.name) ? [...args, ...shardsArguments(options.shards)] : args,
  }));
}

/** The Deployments whose processes must agree on the number of shards. */
const SHARDED = new Set(["legation-controller", "legation-webhook"]);

const clientConfig = z.looseObject({
  service: z.looseObject({ path: z.string().optional() }).optional(),
  caBundle: z.unknown().optional(),
});
const webhookList = z.array(z.looseObject({ name: z.string(), clientConfig }));

/** Points webhooks at a URL. Never sets a caBundle, which belongs to the webhook process. */
function withClientConfig(manifest: Manifest, url: string | undefined): Manifest {
  const webhooks = webhookList.parse(manifest.webhooks).map((webhook) => {
    const { service, caBundle: _, ...rest } = webhook.clientConfig;
    const target = url === undefined ? { service } : { url: new URL(service?.path ?? "/", url).href };
    return { ...webhook, clientConfig: { ...rest, ...target } };
  });
  return { ...manifest, webhooks };
}

/** Makes the Service of `legation access` one that names a server outside the cluster. */
function withAddress(manifest: Manifest, address: string | undefined): Manifest {
  if (address === undefined) return manifest;
  const { hostname, port } = addressUrl(address);
  const spec = { type: "ExternalName", externalName: hostname, ports: [{ name: "https", port }] };
  return { ...manifest, spec };
}

const apiServiceSpec = z.looseObject({ service: z.looseObject({}) });

/** API servers take the port of an ExternalName Service from the APIService. */
function withPort(manifest: Manifest, address: string | undefined): Manifest {
  if (address === undefined) return manifest;
  const spec = apiServiceSpec.parse(manifest.spec);
  return { ...manifest, spec: { ...spec, service: { ...spec.service, port: addressUrl(address).port } } };
}

function addressUrl(address: string): { readonly hostname: string; readonly port: number } {
  const { hostname, port } = new URL(`https://${address}`);
  return { hostname, port: port === "" ? 443 : Number(port) };
}

/** Labels the pods, too: `legation version` tells those of an earlier version by it. */
function withPodVersion(manifest: Manifest, version: string): Manifest {
  const spec = labelledPods.parse(manifest.spec);
  const { metadata } = spec.template;
  const labels = { ...metadata.labels, [VERSION_LABEL]: version };
  return { ...manifest, spec: { ...spec, template: { ...spec.template, metadata: { ...metadata, labels } } } };
}

const labelledPods = z.looseObject({
  template: z.looseObject({ metadata: z.looseObject({ labels: labelMap }).default({ labels: {} }) }),
});

export function withImage(manifest: Manifest, image: string): Manifest {
  return withContainers(manifest, (container) => ({ ...container, image }));
}

function withContainers(manifest: Manifest, change: (container: Container) => Container): Manifest {
  const spec = deploymentSpec.parse(manifest.spec);
  const { template } = spec;
  const containers = template.spec.containers.map(change);
  return { ...manifest, spec: { ...spec, template: { ...template, spec: { ...template.spec, containers } } } };
}

function labelled(manifest: Manifest): Manifest {
  const labels = { ...labelMap.parse(manifest.metadata.labels), ...INSTALLED_LABELS };
  return { ...manifest, metadata: { ...manifest.metadata, labels } };
}

function hostConfig({ clusterName, network = "", mcs }: InstallOptions): Manifest {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: HOST_CONFIG_NAME, namespace: SYSTEM_NAMESPACE },
    data: { [HOST_NAME_KEY]: clusterName, [HOST_NETWORK_KEY]: network, [HOST_MCS_KEY]: `${mcs}` },
  };
}
