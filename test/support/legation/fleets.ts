import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { jsonEqual } from "../../../src/api/json.ts";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";

// The audit policy of the clusters records what is written to this group.
const GROUP = "scale.example.com";
const METRICS_GROUP = "external.metrics.k8s.io";
const ANY = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** Name of the definition and of the DelegatedType. */
export const FLEETS: string = `fleets.${GROUP}`;

/** A custom resource that autoscalers scale. */
export const fleets: Resource<AnyObject> = {
  group: GROUP,
  version: "v1",
  plural: "fleets",
  kind: "Fleet",
  namespaced: true,
};

export const fleetDefinition: object = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: FLEETS },
  spec: {
    group: GROUP,
    scope: "Namespaced",
    names: { kind: "Fleet", listKind: "FleetList", plural: "fleets", singular: "fleet" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".status.selector",
          },
        },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: { ...ANY, properties: { replicas: { type: "integer", default: 1 } } },
              status: { ...ANY, properties: { replicas: { type: "integer" } } },
            },
          },
        },
      },
    ],
  },
};

// An autoscaler reads objects of this resource as it reads the answers of a metrics server.
const BACKLOGS = `backlogs.${METRICS_GROUP}`;
const backlogs: Resource<KubeObject> = {
  group: METRICS_GROUP,
  version: "v1beta1",
  plural: "backlogs",
  kind: "ExternalMetricValue",
  namespaced: true,
};
const backlogDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: BACKLOGS, annotations: { "api-approved.kubernetes.io": "unapproved, of a test" } },
  spec: {
    group: METRICS_GROUP,
    scope: "Namespaced",
    names: { plural: "backlogs", kind: "ExternalMetricValue", listKind: "ExternalMetricValueList" },
    versions: [{ name: "v1beta1", served: true, storage: true, schema: { openAPIV3Schema: ANY } }],
  },
};

/** Lets a cluster's autoscalers read the metric `backlogs`, whose values the test writes. */
export async function installMetric(cluster: Cluster): Promise<void> {
  await applyAll(cluster, [backlogDefinition]);
  await kubectl(cluster, ["wait", "--for=condition=Established", `customresourcedefinition/${BACKLOGS}`]);
}

export async function removeMetric(cluster: Cluster): Promise<void> {
  await kubectl(cluster, ["delete", "--ignore-not-found", `customresourcedefinition/${BACKLOGS}`]);
}

/** Sets the metric of a namespace, and so the number of replicas that its autoscaler wants. */
export async function setBacklog(client: ClusterClient, namespace: string, value: number): Promise<void> {
  const body = {
    apiVersion: `${METRICS_GROUP}/v1beta1`,
    kind: "ExternalMetricValue",
    metadata: { name: "backlog", namespace },
    metricName: "backlogs",
    timestamp: new Date().toISOString(),
    value: String(value),
  };
  const options = { fieldManager: "test" };
  await client.patch(backlogs, { namespace, name: "backlog" }, { type: "apply", body, force: true }, options);
}

/** A HorizontalPodAutoscaler that gives fleet `one` as many replicas as the backlog says, at once. */
export function autoscaler(namespace: string): object {
  const atOnce = { stabilizationWindowSeconds: 0, policies: [{ type: "Percent", value: 1000, periodSeconds: 1 }] };
  const target = { type: "AverageValue", averageValue: "1" };
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "one", namespace },
    spec: {
      scaleTargetRef: { apiVersion: `${GROUP}/v1`, kind: "Fleet", name: "one" },
      minReplicas: 1,
      maxReplicas: 20,
      metrics: [{ type: "External", external: { metric: { name: "backlogs" }, target } }],
      behavior: {
        scaleUp: atOnce,
        scaleDown: { ...atOnce, policies: [{ type: "Percent", value: 100, periodSeconds: 1 }] },
      },
    },
  };
}

/** Does as the operator of fleets does: starts as many as there are to be, and reports them. */
export async function operate(client: ClusterClient, namespace: string): Promise<number> {
  const ref = { namespace, name: "one" };
  const { spec, status } = await client.get<AnyObject & { spec?: { replicas?: number } }>(fleets, ref);
  const replicas = spec?.replicas ?? 0;
  const wanted = { replicas, selector: "app=fleet" };
  if (!jsonEqual(status, wanted)) {
    await client.patch(fleets, ref, { type: "merge", body: { status: wanted } }, { subresource: "status" });
  }
  return replicas;
}
