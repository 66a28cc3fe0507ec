import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";

const NAME = "serviceexports.multicluster.x-k8s.io";
const CRD = {
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
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              status: {
                type: "object",
                properties: {
                  // As in the API's own definition.
                  conditions: {
                    type: "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    items: {
                      type: "object",
                      required: ["type", "status", "reason", "message", "lastTransitionTime"],
                      properties: {
                        ...Object.fromEntries(
                          ["type", "reason", "message"].map((field) => [field, { type: "string" }]),
                        ),
                        status: { type: "string", enum: ["True", "False", "Unknown"] },
                        lastTransitionTime: { type: "string", format: "date-time" },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** Gives a cluster the part of the Multi-Cluster Services API that is written by people; nobody serves it there. */
export async function installServiceExports(cluster: Cluster): Promise<void> {
  await kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(CRD) });
  await kubectl(cluster, ["wait", `crd/${NAME}`, "--for=condition=Established", "--timeout=30s"]);
}

/** Takes it away again, with all that was made of it. */
export async function removeServiceExports(cluster: Cluster): Promise<void> {
  await kubectl(cluster, ["delete", "crd", NAME, "--ignore-not-found"]);
}
