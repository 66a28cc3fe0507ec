import { z } from "zod";
import { apiServices } from "../../access/api-service.ts";
import { ACCESS_NAMESPACE } from "../../api/access.ts";
import { defined } from "../../api/defined.ts";
import { setAt, valueAt } from "../../api/json.ts";
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
    .map((manifest) => labelled(manifest, INSTALLED_LABELS))
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

function adjust(manifest: Manifest, { webhookUrl, accessAddress, image, shards, version }: InstallOptions): Manifest {
  const { kind, metadata } = manifest;
  if (WEBHOOK_KINDS.has(kind)) return withTarget(manifest, webhookUrl);
  if (kind === "Deployment") {
    // Version and image are one write, so that an interruption cannot separate the two. `legation version` reads the pods'.
    const labels = { [VERSION_LABEL]: version };
    const further = SHARDED.has(metadata.name) ? shardsArguments(shards) : [];
    return withContainers(labelled(labelled(manifest, labels), labels, TEMPLATE), ({ args = [], ...container }) => ({
      ...container,
      ...defined({ image: image ?? container.image }),
      args: [...args, ...further],
    }));
  }
  if (accessAddress === undefined) return manifest;
  const { hostname, port } = new URL(`https://${accessAddress}`);
  const number = Number(port || 443);
  // API servers take the port of an ExternalName Service from the APIService.
  if (kind === apiServices.kind) return setAt(manifest, ["spec", "service", "port"], number);
  if (kind !== "Service" || metadata.name !== ACCESS_SERVICE) return manifest;
  const ports = [{ name: "https", port: number }];
  return { ...manifest, spec: { type: "ExternalName", externalName: hostname, ports } };
}

/** The Deployments whose processes must agree on the number of shards. */
const SHARDED = new Set(["legation-controller", "legation-webhook"]);

const webhookList = z.array(
  z.looseObject({
    clientConfig: z.looseObject({ service: z.looseObject({ path: z.string().default("/") }).optional() }),
  }),
);

/** Points webhooks at a URL. Never sets a caBundle, which belongs to the webhook process. */
function withTarget(manifest: Manifest, url: string | undefined): Manifest {
  const webhooks = webhookList.parse(manifest.webhooks).map(({ clientConfig: { service }, ...webhook }) => {
    const clientConfig = url === undefined ? { service } : { url: new URL(service?.path ?? "/", url).href };
    return { ...webhook, clientConfig };
  });
  return { ...manifest, webhooks };
}

export function withImage(manifest: Manifest, image: string): Manifest {
  return withContainers(manifest, (container) => ({ ...container, image }));
}

const TEMPLATE = ["spec", "template"];

function withContainers(manifest: Manifest, change: (container: Container) => Container): Manifest {
  const { containers } = deploymentSpec.parse(manifest.spec).template.spec;
  return setAt(manifest, [...TEMPLATE, "spec", "containers"], containers.map(change));
}

/** Adds labels to an object, or to the part of it at a path. */
function labelled(manifest: Manifest, labels: Labels, part: readonly string[] = []): Manifest {
  const path = [...part, "metadata", "labels"];
  return setAt(manifest, path, { ...labelMap.parse(valueAt(manifest, path)), ...labels });
}

type Labels = Readonly<Record<string, string>>;

function hostConfig({ clusterName, network = "", mcs }: InstallOptions): Manifest {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: HOST_CONFIG_NAME, namespace: SYSTEM_NAMESPACE },
    data: { [HOST_NAME_KEY]: clusterName, [HOST_NETWORK_KEY]: network, [HOST_MCS_KEY]: `${mcs}` },
  };
}
