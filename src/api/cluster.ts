import { z } from "zod";
import { type ClusterPolicy, clusterPolicyFields } from "./cluster-policy.ts";
import type { ObjectMeta } from "./kubernetes.ts";
import { type LabelSelector, labelSelectorSchema } from "./label-expressions.ts";

/** Where the kubeconfig of a member is kept. */
export interface CredentialsSecret {
  /** Name of a Secret in Legation's own namespace on the host. */
  readonly name: string;
  /** Key in that Secret; default `kubeconfig`. */
  readonly key?: string;
}

/** How the controller finds out whether a member's API server answers. */
export interface ProbeSpec {
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}

/** How pods in a member reach the host's API server. */
export interface HomeApiSpec {
  /** `https://HOST` or `https://HOST:PORT`, without a path: in-cluster configuration has no room for one. */
  readonly server: string;
  /** Base64 of a PEM bundle; default: the host's own, as in every namespace's `kube-root-ca.crt`. */
  readonly certificateAuthorityData?: string;
}

/** What an operator says about a member. */
export interface ClusterSpec extends ClusterPolicy {
  readonly credentialsSecret: CredentialsSecret;
  /** May a namespace that the member lacks be made there? Default true. */
  readonly createNamespaces?: boolean;
  /** How long the member's scheduler may look for a node before the next member is tried; default 30. */
  readonly scheduleTimeoutSeconds?: number;
  readonly probe?: ProbeSpec;
  /** How its pods reach the host's API server; absent: as the controller was told for all members. */
  readonly homeAPI?: HomeApiSpec;
  /** The member's storage class for one of the host, by name; absent: the same name. */
  readonly storageClasses?: Readonly<Record<string, string>>;
  /** Labels of the host's PriorityClasses and RuntimeClasses that follow pods there; absent: none do; empty: all do. */
  readonly classSelector?: LabelSelector;
}

/** A condition as in all of Kubernetes. */
export interface ClusterCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** Nodes of a member that are alike and take pods. */
export interface NodeKind {
  readonly count: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /** Of the largest of them. */
  readonly allocatable: Readonly<Record<string, string>>;
}

/** Type of the condition that says what keeps a Cluster which is being deleted. */
export const RELEASED_CONDITION = "Released";

/** What the controller found out about a member. */
export interface ClusterStatus {
  readonly observedGeneration?: number;
  /** Version of its API server, e.g. v1.36.3. */
  readonly version?: string;
  /** Address at which the controller reaches, or tries to reach, its API server. */
  readonly server?: string;
  readonly nodes?: number;
  /** Proxies of this host bound to it. */
  readonly pods?: number;
  readonly capacity?: Readonly<Record<string, string>>;
  readonly allocatable?: Readonly<Record<string, string>>;
  /** Per resource, the most that one of its nodes has. */
  readonly largestNode?: Readonly<Record<string, string>>;
  /** Its nodes in few words; absent: there is no such summary. */
  readonly nodeKinds?: readonly NodeKind[];
  /** Labels of its nodes that their kinds leave out. */
  readonly unlistedNodeLabels?: readonly string[];
  /** What pods that are not this host's request there, as last read. */
  readonly requestedByOthers?: Readonly<Record<string, string>>;
  /** Delegates there that are kept though the host does not know them: it was set back to an older state. */
  readonly heldDelegates?: number;
  readonly conditions?: readonly ClusterCondition[];
}

/** A member cluster, as its object on the host. Selectors of pods see the labels of its metadata. */
export interface Cluster {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: ClusterSpec;
  readonly status?: ClusterStatus;
}

/** Defaults that the API server fills into a Cluster's spec. */
export const CLUSTER_DEFAULTS: {
  readonly credentialsKey: string;
  readonly createNamespaces: boolean;
  readonly scheduleTimeoutSeconds: number;
  readonly probe: {
    readonly periodSeconds: number;
    readonly timeoutSeconds: number;
    readonly failureThreshold: number;
  };
} = {
  credentialsKey: "kubeconfig",
  createNamespaces: true,
  scheduleTimeoutSeconds: 30,
  probe: { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
};

/** Longest name of a Cluster: `legation-<name>` is also the hostname label of its virtual node, of 63 characters. */
export const CLUSTER_NAME_MAX = 54;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** What is wrong with `name` as the name of a Cluster, as a phrase after the name; undefined when nothing is. */
export function clusterNameProblem(name: string): string | undefined {
  if (name.length > CLUSTER_NAME_MAX) return `is longer than ${CLUSTER_NAME_MAX} characters`;
  return DNS_LABEL.test(name)
    ? undefined
    : "is not a DNS label (a-z, 0-9 and -, with a letter or digit first and last)";
}

const { probe: PROBE_DEFAULTS } = CLUSTER_DEFAULTS;

const serverRules = [
  {
    rule: "self.matches('^https://([a-zA-Z0-9.-]+|\\\\[[0-9a-fA-F:.]+\\\\])(:[0-9]{1,5})?/?$')",
    message: "must be https://HOST or https://HOST:PORT, without a path, e.g. https://10.0.0.1:6443",
  },
];

const specSchema = z
  .object({
    credentialsSecret: z
      .object({
        name: z.string().min(1).max(253).describe("Name of a Secret in namespace legation-system."),
        key: z.string().min(1).max(253).default(CLUSTER_DEFAULTS.credentialsKey).describe("Key in that Secret."),
      })
      .describe("Secret that holds the kubeconfig of the member; `legation join` makes it."),
    createNamespaces: z
      .boolean()
      .default(CLUSTER_DEFAULTS.createNamespaces)
      .describe("Whether a namespace that the member lacks is made there when a pod of it is delegated."),
    scheduleTimeoutSeconds: z
      .int32()
      .min(1)
      .max(3600)
      .default(CLUSTER_DEFAULTS.scheduleTimeoutSeconds)
      .describe("How long the member's scheduler may look for a node before the next member is tried."),
    probe: z
      .object({
        periodSeconds: z.int32().min(1).max(300).default(PROBE_DEFAULTS.periodSeconds).describe("Time between probes."),
        timeoutSeconds: z
          .int32()
          .min(1)
          .max(60)
          .default(PROBE_DEFAULTS.timeoutSeconds)
          .describe("Deadline of a probe."),
        failureThreshold: z
          .int32()
          .min(1)
          .max(100)
          .default(PROBE_DEFAULTS.failureThreshold)
          .describe("Failed probes in a row after which the member is not ready."),
      })
      .prefault({})
      .describe("How the controller finds out whether the member's API server answers."),
    homeAPI: z
      .object({
        server: z
          .string()
          .max(512)
          .describe("https://HOST or https://HOST:PORT, without a path.")
          .meta({ "x-kubernetes-validations": serverRules }),
        certificateAuthorityData: z
          .string()
          .max(65_536)
          .meta({ format: "byte" })
          .describe("PEM bundle that vouches for that address; default: the host's own authority.")
          .exactOptional(),
      })
      .describe("How pods in the member reach the host's API server; default: as the controller's flag says.")
      .exactOptional(),
    storageClasses: z
      .record(z.string().max(253), z.string().max(253))
      .describe(
        "Storage classes of PersistentVolumeClaims: of the host, and the member's in its place. Default: the same.",
      )
      .exactOptional(),
    classSelector: labelSelectorSchema
      .describe(
        "Labels of the host's PriorityClasses and RuntimeClasses that are copied to the member for the pods that name them, " +
          "where it has none of that name. Absent: none; empty: all.",
      )
      .exactOptional(),
    ...clusterPolicyFields,
  })
  .describe("What an operator says about the member.");

const resourceList = z.record(z.string(), z.string());

const conditionSchema = z.object({
  type: z.string().min(1).max(316),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string().max(1024),
  message: z.string().max(32_768),
  lastTransitionTime: z.string().meta({ format: "date-time" }),
  observedGeneration: z.number().int().min(0).meta({ format: "int64" }).exactOptional(),
});

const statusSchema = z
  .object({
    observedGeneration: z.number().int().min(0).meta({ format: "int64" }).exactOptional(),
    version: z.string().describe("Version of the member's API server.").exactOptional(),
    server: z.string().describe("Address at which the controller reaches the member's API server.").exactOptional(),
    nodes: z.int32().min(0).describe("Nodes of the member, also those that take no pods.").exactOptional(),
    pods: z.int32().min(0).describe("Proxies of this host that are bound to the member.").exactOptional(),
    capacity: resourceList.describe("Sum over the member's nodes.").exactOptional(),
    allocatable: resourceList.describe("Sum over the member's schedulable nodes.").exactOptional(),
    largestNode: resourceList.describe("Per resource, the most that one schedulable node has.").exactOptional(),
    nodeKinds: z
      .array(
        z.object({
          count: z.int32().min(1),
          labels: z.record(z.string(), z.string()).exactOptional(),
          taints: z
            .array(z.object({ key: z.string(), value: z.string().exactOptional(), effect: z.string() }))
            .exactOptional(),
          allocatable: resourceList,
        }),
      )
      .describe("The nodes that take pods, those alike in labels, taints and size together; for `legation plan`.")
      .exactOptional(),
    unlistedNodeLabels: z
      .array(z.string())
      .describe("Labels of nodes that nodeKinds leaves out, since they would make too many kinds.")
      .exactOptional(),
    requestedByOthers: resourceList.describe("What pods of others request there, as last read.").exactOptional(),
    heldDelegates: z
      .int32()
      .describe(
        "Delegates there that are kept though the host, which was set back to an older state, does not know them.",
      )
      .exactOptional(),
    conditions: z
      .array(conditionSchema)
      .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
      .exactOptional(),
  })
  .describe("What the controller found out about the member.");

const rules = [
  {
    rule: `self.metadata.name.size() <= ${CLUSTER_NAME_MAX}`,
    message: `the name of a Cluster has at most ${CLUSTER_NAME_MAX} characters, since its virtual node is named legation-<name>`,
  },
  {
    rule: `self.metadata.name.matches('${DNS_LABEL.source}')`,
    message: "the name of a Cluster is a DNS label: a-z, 0-9 and -, with a letter or digit first and last",
  },
];

/** The CustomResourceDefinition's schema is generated from this: what an author may write. */
export const clusterSchema: z.ZodType<Pick<Cluster, "spec" | "status">> = z
  .object({ spec: specSchema, status: statusSchema.exactOptional() })
  .describe("A member cluster: pods of the host run in it. Its labels are what cluster selectors match.")
  .meta({ "x-kubernetes-validations": rules });
