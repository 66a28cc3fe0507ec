import type { ServiceExport } from "../../../src/api/kubernetes.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";

const NAME = "serviceexports.multicluster.x-k8s.io";
const VERSIONS = ["v1alpha1", "v1beta1"] as const;
type Version = (typeof VERSIONS)[number];

// CRDs of both versions, from sigs.k8s.io/mcs-api/config/crd without descriptions.
const SCHEMA = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: Object.fromEntries(
        ["exportedAnnotations", "exportedLabels"].map((field) => [
          field,
          { type: "object", additionalProperties: { type: "string" } },
        ]),
      ),
    },
    status: {
      type: "object",
      properties: {
        conditions: {
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
        },
      },
    },
  },
};

function definition(served: readonly Version[]): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: NAME,
      annotations: { "api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1645" },
    },
    spec: {
      group: "multicluster.x-k8s.io",
      scope: "Namespaced",
      names: { plural: "serviceexports", singular: "serviceexport", kind: "ServiceExport", shortNames: ["svcex"] },
      versions: VERSIONS.map((name) => ({
        name,
        served: served.includes(name),
        storage: name === served.at(-1),
        subresources: { status: {} },
        schema: { openAPIV3Schema: SCHEMA },
      })),
    },
  };
}

/** ServiceExports in one of their versions. */
export function serviceExportsIn(version: Version): Resource<ServiceExport> {
  return { group: "multicluster.x-k8s.io", version, plural: "serviceexports", kind: "ServiceExport", namespaced: true };
}

/**
 * Installs the Multi-Cluster Services CRDs that authors write, in these versions, without an implementation. Default:
 * as mcs-api 0.5.
 */
export async function installServiceExports(cluster: Cluster, served: readonly Version[] = VERSIONS): Promise<void> {
  await kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(definition(served)) });
  await kubectl(cluster, ["wait", `crd/${NAME}`, "--for=condition=Established", "--timeout=30s"]);
}

/** Takes it away again, with all that was made of it. */
export async function removeServiceExports(cluster: Cluster): Promise<void> {
  await kubectl(cluster, ["delete", "crd", NAME, "--ignore-not-found"]);
}
