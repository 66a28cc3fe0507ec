import { clusterSchema } from "../../src/api/cluster.ts";
import { GROUP } from "../../src/api/keys.ts";
import { structuralSchema } from "./structural-schema.ts";

// As on everything in manifests/: `legation uninstall` finds its objects by them, whoever applied them.
const INSTALLATION_LABELS = { "app.kubernetes.io/part-of": "legation", "app.kubernetes.io/managed-by": "legation" };
const ready = '.status.conditions[?(@.type=="Ready")]';

/** The CustomResourceDefinition of Cluster. */
export function clusterDefinition(): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `clusters.${GROUP}`, labels: INSTALLATION_LABELS },
    spec: {
      group: GROUP,
      scope: "Cluster",
      names: {
        kind: "Cluster",
        listKind: "ClusterList",
        plural: "clusters",
        singular: "cluster",
        categories: ["legation"],
      },
      versions: [
        {
          name: "v1alpha1",
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [
            { name: "Ready", type: "string", jsonPath: `${ready}.status` },
            { name: "Version", type: "string", jsonPath: ".status.version" },
            { name: "Nodes", type: "integer", jsonPath: ".status.nodes" },
            { name: "Pods", type: "integer", jsonPath: ".status.pods", description: "Proxies bound to the member." },
            { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
            { name: "Message", type: "string", jsonPath: `${ready}.message`, priority: 1 },
          ],
          schema: { openAPIV3Schema: withObjectFields(structuralSchema(clusterSchema)) },
        },
      ],
    },
  };
}

/** The fields that every object has, so that `kubectl explain` shows them. */
function withObjectFields(schema: { readonly [field: string]: unknown }): object {
  const properties = schema.properties;
  return {
    ...schema,
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      ...(typeof properties === "object" ? properties : {}),
    },
  };
}
