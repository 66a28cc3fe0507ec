import { clusterSchema } from "../../src/api/cluster.ts";
import { GROUP } from "../../src/api/keys.ts";
import { INSTALLATION_LABELS, withObjectFields } from "./object-fields.ts";
import { structuralSchema } from "./structural-schema.ts";

const ready = '.status.conditions[?(@.type=="Ready")]';

/** Returns the CustomResourceDefinition of Cluster. */
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
