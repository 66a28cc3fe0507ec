import { clusterSchema } from "../../src/api/cluster.ts";
import { definitionOf, READY } from "./definition.ts";

/** Returns the CustomResourceDefinition of Cluster. */
export function clusterDefinition(): object {
  return definitionOf({
    kind: "Cluster",
    plural: "clusters",
    hasStatus: true,
    columns: [
      { name: "Ready", type: "string", jsonPath: `${READY}.status` },
      { name: "Connection", type: "string", jsonPath: ".status.connection", priority: 1 },
      { name: "Agent", type: "string", jsonPath: ".status.agent.version", priority: 1 },
      { name: "Version", type: "string", jsonPath: ".status.version" },
      { name: "Nodes", type: "integer", jsonPath: ".status.nodes" },
      { name: "Pods", type: "integer", jsonPath: ".status.pods", description: "Proxies bound to the member." },
      { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      { name: "Message", type: "string", jsonPath: `${READY}.message`, priority: 1 },
    ],
    schema: clusterSchema,
  });
}
