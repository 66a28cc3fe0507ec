import { z } from "zod";
import { networkOrNone } from "../../src/api/cluster.ts";
import { MOST_SHARDS } from "../../src/api/shards.ts";
import { memberName } from "../../src/cli/shared/input.ts";

/** A container's requests and limits. */
interface Resources {
  readonly requests?: Readonly<Record<string, string | number>> | undefined;
  readonly limits?: Readonly<Record<string, string | number>> | undefined;
}

/** Values of a Deployment, as the manifests have them. */
export interface DeploymentDefaults {
  readonly replicas: number;
  readonly resources: Resources;
  /** Empty: no class. */
  readonly priorityClassName: string;
  readonly topologySpreadConstraints: readonly object[];
  readonly podSecurityContext: object;
  readonly securityContext: object;
}

/** The Deployments of the chart. */
export const COMPONENTS = ["controller", "webhook", "access", "relay", "ui"] as const;
export type Component = (typeof COMPONENTS)[number];

const quantity = z.union([
  z.string().regex(/^[0-9.]+(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei|[eE][+-]?[0-9]+)?$/),
  z.number().nonnegative(),
]);
const quantities = z.record(z.string(), quantity);
const labelMap = z.record(z.string(), z.string());
const anyObject = z.looseObject({});

// Labels that the chart sets, by which Services and Legation itself find objects, and those that admission goes by.
const OWN_LABEL =
  /^(app\.kubernetes\.io\/(name|component|part-of|managed-by|version)|helm\.sh\/chart|(.*\.)?legation\.dev\/.*|pod-security\.kubernetes\.io\/.*)$/;
// Regular expressions that Helm knows have no lookahead: labels that match fit no schema.
const furtherLabels = labelMap
  .refine((labels) => !Object.keys(labels).some((key) => OWN_LABEL.test(key)), "has a label that the chart sets")
  .meta({ patternProperties: { [OWN_LABEL.source]: false } });

const replicas = z.int().min(0).max(10).describe("Pods of the Deployment.");
// Sessions of the page are in the memory of one process.
const single = {
  resources: z
    .strictObject({ requests: quantities.exactOptional(), limits: quantities.exactOptional() })
    .describe("Requests and limits of the container."),
  env: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
        value: z.string().exactOptional(),
        valueFrom: anyObject.exactOptional(),
      }),
    )
    .describe("More environment variables. Each flag of the process is one: `--log-level` is `LEGATION_LOG_LEVEL`."),
  nodeSelector: labelMap.describe("Labels that a node of the pods must have."),
  tolerations: z.array(anyObject).describe("Taints that the pods tolerate."),
  affinity: anyObject.describe("Affinity of the pods."),
  topologySpreadConstraints: z.array(anyObject).describe("Constraints by which the pods are spread."),
  priorityClassName: z
    .string()
    .regex(/^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$/)
    .describe("PriorityClass of the pods. Empty: none."),
  podAnnotations: labelMap.describe("Annotations of the pods."),
  podLabels: furtherLabels.describe("More labels of the pods."),
  podSecurityContext: anyObject.describe(
    "Security context of the pods. A field that is `null` is left out: on OpenShift `runAsUser` and `runAsGroup`.",
  ),
  securityContext: anyObject.describe("Security context of the container."),
  serviceAccount: z.strictObject({ annotations: labelMap.describe("Annotations of the service account.") }),
};
const process = { replicas, ...single };

/** Schema of the chart's values. */
export const valuesSchema: z.ZodType = z
  .strictObject({
    clusterName: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/)
      .describe("Name by which members know this host. Each host of a member needs its own."),
    network: networkOrNone.describe(
      "Network of the host's pods, whose addresses the members reach that joined with the same. Empty: none.",
    ),
    image: z.strictObject({
      repository: z
        .string()
        .regex(/^[a-z0-9[][a-zA-Z0-9.:/_[\]-]*$/)
        .describe("Image of all processes, without its tag."),
      tag: z
        .string()
        .regex(/^[A-Za-z0-9_.-]*$/)
        .describe("Tag of the image. Empty: the version of the chart."),
      digest: z
        .string()
        .regex(/^(sha256:[a-f0-9]{64})?$/)
        .describe("Digest of the image, which wins over the tag: `sha256:…`."),
      pullPolicy: z
        .enum(["", "Always", "IfNotPresent", "Never"])
        .describe("When kubelets pull the image. Empty: as Kubernetes decides."),
      pullSecrets: z
        .array(z.strictObject({ name: z.string().min(1) }))
        .describe("Secrets with which kubelets pull the image. They must be in the namespaces of the pods."),
    }),
    commonLabels: furtherLabels.describe("More labels of every object of the chart, but not of the pods."),
    crds: z.strictObject({
      install: z
        .boolean()
        .describe("Render the custom resource definitions. They stay when the release is uninstalled."),
    }),
    controller: z.strictObject({
      shards: z
        .int()
        .min(1)
        .max(MOST_SHARDS)
        .describe("Parts that the namespaces are divided into, which the pods share out (performance.md)."),
      ...process,
    }),
    webhook: z.strictObject({
      ...process,
      certificate: z.strictObject({
        source: z
          .enum(["self", "cert-manager"])
          .describe("Origin of the serving certificate: the webhook itself, or cert-manager, which must be installed."),
        issuerRef: z
          .strictObject({
            name: z.string().min(1),
            kind: z.enum(["Issuer", "ClusterIssuer"]).exactOptional(),
            group: z.string().exactOptional(),
          })
          .partial()
          .describe(
            "Issuer that cert-manager asks, of type CA or Vault. Empty: the chart makes a certificate authority of its own.",
          ),
      }),
    }),
    access: z.strictObject({
      enabled: z
        .boolean()
        .describe("Users of the host reach the API servers of members that join with `--access` (access.md)."),
      ...process,
    }),
    relay: z.strictObject({
      enabled: z
        .boolean()
        .describe("Services with the annotation `legation.dev/relay` lead to pods in members (relay.md)."),
      members: z
        .array(memberName)
        .describe("Members in which relays run, so that pods there reach relayed Services (relay.md#from-members)."),
      ...process,
    }),
    mcs: z.strictObject({
      enabled: z
        .boolean()
        .describe("Implement the Multi-Cluster Services API in joined networks whose clusters serve it (services.md)."),
    }),
    ui: z.strictObject({
      enabled: z.boolean().describe("Serve the page to all users who have a token for the host (ui.md)."),
      hosts: z
        .array(z.string().regex(/^[A-Za-z0-9.-]+$/))
        .min(1)
        .describe("Names by which browsers reach the page. Those of `kubectl port-forward` always work."),
      ...single,
    }),
    hub: z.strictObject({
      enabled: z.boolean().describe("Make the Service at which agents of members reach the controller (agents.md)."),
      type: z.enum(["LoadBalancer", "NodePort", "ClusterIP"]).describe("Type of this Service."),
      annotations: labelMap.describe("Annotations of this Service."),
    }),
    monitoring: z.strictObject({
      podMonitors: z
        .boolean()
        .describe("Make PodMonitors for the Prometheus operator. Each pod has its own metrics, so no Service has any."),
      rules: z.boolean().describe("Make the PrometheusRule with the alerts of runbook.md."),
      labels: labelMap.describe("Labels of both, as the Prometheus selects them: `release: NAME`."),
    }),
    networkPolicy: z.strictObject({
      enabled: z.boolean().describe("Make NetworkPolicies that close every other port of the pods."),
    }),
    extraObjects: z
      .array(z.union([anyObject, z.string()]))
      .describe("More objects of the release, as YAML or as text. Both may have templates."),
    // Helm passes it to charts that are part of another.
    global: anyObject.exactOptional(),
  })
  .describe("Values of the chart legation");

/** The default values of the chart. */
export interface ChartDefaults {
  readonly image: { readonly repository: string };
}

/** Returns the default values: an installation as `legation install` makes it. */
export function defaultValues(
  deployments: Readonly<Record<Component, DeploymentDefaults>>,
  { repository, hosts }: { readonly repository: string; readonly hosts: readonly string[] },
): ChartDefaults {
  const { replicas: _, ...ofPage } = deployments.ui;
  const processOf = (component: Component): object => ({
    ...(component === "ui" ? ofPage : deployments[component]),
    env: [],
    nodeSelector: {},
    tolerations: [],
    affinity: {},
    podAnnotations: {},
    podLabels: {},
    serviceAccount: { annotations: {} },
  });
  const values = {
    clusterName: "host",
    network: "",
    image: { repository, tag: "", digest: "", pullPolicy: "", pullSecrets: [] },
    commonLabels: {},
    crds: { install: true },
    controller: { shards: 1, ...processOf("controller") },
    webhook: { ...processOf("webhook"), certificate: { source: "self", issuerRef: {} } },
    access: { enabled: false, ...processOf("access") },
    relay: { enabled: false, members: [], ...processOf("relay") },
    mcs: { enabled: false },
    ui: { enabled: false, hosts, ...processOf("ui") },
    hub: { enabled: false, type: "LoadBalancer", annotations: {} },
    monitoring: { podMonitors: false, rules: false, labels: {} },
    networkPolicy: { enabled: false },
    extraObjects: [],
  };
  return values;
}

/** Returns values.schema.json, in the draft that every Helm 3 and 4 reads. */
export function jsonSchema(): object {
  return z.toJSONSchema(valuesSchema, { target: "draft-7", io: "input" });
}

/** A value and what it means. */
export interface ValueRow {
  readonly path: string;
  readonly value: unknown;
  readonly description: string;
}

const schemaNode = z.looseObject({
  description: z.string().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
});
const objectValue = z.record(z.string(), z.unknown());

/** Returns each value that has a description, with its default. */
export function valueRows(values: object): ValueRow[] {
  return rowsOf(jsonSchema(), values, []);
}

function rowsOf(schema: unknown, value: unknown, path: readonly string[]): ValueRow[] {
  const { description, properties } = schemaNode.parse(schema);
  if (path.length > 0 && description !== undefined) return [{ path: path.join("."), value, description }];
  const values = objectValue.parse(value ?? {});
  return Object.entries(properties ?? {}).flatMap(([name, inner]) =>
    values[name] === undefined ? [] : rowsOf(inner, values[name], [...path, name]),
  );
}
