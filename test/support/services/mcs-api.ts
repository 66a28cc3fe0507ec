import type { ServiceExport, ServiceImport } from "../../../src/api/kubernetes.ts";
import { namespaced, type Resource } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";

const GROUP = "multicluster.x-k8s.io";
const VERSIONS = ["v1alpha1", "v1beta1"] as const;
type Version = (typeof VERSIONS)[number];

// CRDs of both versions, from sigs.k8s.io/mcs-api/config/crd without descriptions.
const CONDITIONS = {
  type: "array",
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["type"],
  items: {
    type: "object",
    required: ["lastTransitionTime", "message", "reason", "status", "type"],
    properties: {
      lastTransitionTime: { type: "string", format: "date-time" },
      message: { type: "string", maxLength: 32768 },
      observedGeneration: { type: "integer", format: "int64", minimum: 0 },
      reason: {
        type: "string",
        maxLength: 1024,
        minLength: 1,
        pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
      },
      status: { type: "string", enum: ["True", "False", "Unknown"] },
      type: { type: "string", maxLength: 316 },
    },
  },
};

function listOf(items: object): object {
  return { type: "array", items };
}

function objectOf(properties: object, required: readonly string[] = []): object {
  return { type: "object", properties, ...(required.length > 0 && { required }) };
}

function texts(...names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, { type: "string" }]));
}

const MAP = { type: "object", additionalProperties: { type: "string" } };
const ANY_OBJECT = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const PORT = objectOf({ ...texts("name", "protocol", "appProtocol"), port: { type: "integer", format: "int32" } }, [
  "port",
]);
const CLUSTERS = {
  ...listOf(objectOf(texts("cluster"), ["cluster"])),
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["cluster"],
};
const SCHEMAS: Readonly<Record<"ServiceExport" | "ServiceImport", object>> = {
  ServiceExport: objectOf({
    spec: objectOf({ exportedAnnotations: MAP, exportedLabels: MAP }),
    status: objectOf({ conditions: CONDITIONS }),
  }),
  ServiceImport: objectOf({
    spec: objectOf(
      {
        type: { type: "string", enum: ["ClusterSetIP", "Headless"] },
        ports: { ...listOf(PORT), "x-kubernetes-list-type": "atomic" },
        ips: { ...listOf({ type: "string" }), maxItems: 2 },
        ipFamilies: { ...listOf({ type: "string" }), maxItems: 2 },
        sessionAffinityConfig: ANY_OBJECT,
        ...texts("sessionAffinity", "internalTrafficPolicy", "trafficDistribution"),
      },
      ["ports", "type"],
    ),
    status: objectOf({ clusters: CLUSTERS, conditions: CONDITIONS }),
  }),
};
type Kind = keyof typeof SCHEMAS;

function pluralOf(kind: Kind): string {
  return `${kind.toLowerCase()}s`;
}

function definition(kind: Kind, served: readonly Version[]): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${pluralOf(kind)}.${GROUP}`,
      annotations: { "api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1645" },
    },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: { plural: pluralOf(kind), singular: kind.toLowerCase(), kind },
      versions: VERSIONS.map((name) => ({
        name,
        served: served.includes(name),
        storage: name === served.at(-1),
        subresources: { status: {} },
        schema: { openAPIV3Schema: SCHEMAS[kind] },
      })),
    },
  };
}

/** ServiceExports in one of their versions. */
export function serviceExportsIn(version: Version): Resource<ServiceExport> {
  return { ...namespaced<ServiceExport>(GROUP, "ServiceExport"), version };
}

/** ServiceImports in the newest version. */
export const serviceImports: Resource<ServiceImport> = {
  ...namespaced<ServiceImport>(GROUP, "ServiceImport"),
  version: "v1beta1",
};

/**
 * Installs the Multi-Cluster Services CRDs that authors write, in these versions, without an implementation. Default:
 * as mcs-api 0.5.
 */
export async function installServiceExports(cluster: Cluster, served: readonly Version[] = VERSIONS): Promise<void> {
  await installKind(cluster, "ServiceExport", served);
}

/** Installs the CRDs of the whole API. */
export async function installMcsApi(cluster: Cluster): Promise<void> {
  for (const kind of ["ServiceExport", "ServiceImport"] as const) await installKind(cluster, kind, VERSIONS);
}

async function installKind(cluster: Cluster, kind: Kind, served: readonly Version[]): Promise<void> {
  await kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(definition(kind, served)) });
  const name = `crd/${pluralOf(kind)}.${GROUP}`;
  await kubectl(cluster, ["wait", name, "--for=condition=Established", "--timeout=30s"]);
}

/** Takes it away again, with all that was made of it. */
export async function removeServiceExports(cluster: Cluster): Promise<void> {
  await removeKinds(cluster, ["ServiceExport"]);
}

/** Takes the whole API away again, with all that was made of it. */
export async function removeMcsApi(cluster: Cluster): Promise<void> {
  await removeKinds(cluster, ["ServiceExport", "ServiceImport"]);
}

async function removeKinds(cluster: Cluster, kinds: readonly Kind[]): Promise<void> {
  const names = kinds.map((kind) => `${pluralOf(kind)}.${GROUP}`);
  await kubectl(cluster, ["delete", "crd", ...names, "--ignore-not-found"]);
}
