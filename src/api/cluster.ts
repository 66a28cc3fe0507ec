import { z } from "zod";
import { ACCESS_PREFIX_DEFAULT, ACCESS_PREFIX_MAX, ACCESS_PREFIX_PATTERN } from "./access.ts";
import { type ClusterPolicy, clusterPolicyFields } from "./cluster-policy.ts";
import { type ClusterStatus, clusterStatusSchema, NETWORK_CONDITION } from "./cluster-status.ts";
import type { ObjectMeta } from "./kubernetes.ts";
import { type LabelSelector, labelSelectorSchema } from "./label-expressions.ts";

/** The Secret with a member's kubeconfig. */
export interface CredentialsSecret {
  /** Name of a Secret in Legation's own namespace on the host. */
  readonly name: string;
  /** Key in that Secret; default `kubeconfig`. */
  readonly key?: string;
}

export interface ProbeSpec {
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}

/** The host's API server as pods in a member reach it. */
export interface HomeApiSpec {
  /** `https://HOST[:PORT]`. In-cluster configuration has no place for a path. */
  readonly server: string;
  /** Base64 of a PEM bundle; default: the host's own, from `kube-root-ca.crt`. */
  readonly certificateAuthorityData?: string;
}

/** How a member is reached through an agent. */
export interface AgentSpec {
  /** Pods of the member reach the host's API server through the agent; default false. */
  readonly homeAPI?: boolean;
}

/** How users of the host reach the member's API server through the host's. */
export interface AccessSpec {
  /** Precedes the names of users and groups in the member; default `legation:`. */
  readonly prefix: string;
}

/** An operator's settings of a member. */
export interface ClusterSpec extends ClusterPolicy {
  readonly credentialsSecret: CredentialsSecret;
  /** The member is reached through an agent that runs there and connects to this host. */
  readonly agent?: AgentSpec;
  /** Undefined: users do not reach the member through the host's API server. */
  readonly access?: AccessSpec;
  /** Creates namespaces that the member lacks; default true. */
  readonly createNamespaces?: boolean;
  /** Time for the member's scheduler before the next member is tried; default 30. */
  readonly scheduleTimeoutSeconds?: number;
  readonly probe?: ProbeSpec;
  /** Default: the controller's flag for all members. */
  readonly homeAPI?: HomeApiSpec;
  /** Storage classes of the member by those of the host. Default: the same name. */
  readonly storageClasses?: Readonly<Record<string, string>>;
  /** Selects the host's PriorityClasses and RuntimeClasses to copy. Undefined selects none, empty all. */
  readonly classSelector?: LabelSelector;
  /** Name of the network in which pods of all its clusters reach each other by their addresses. Undefined: of none. */
  readonly network?: string;
  /** Addresses of its pods, where the `podCIDRs` of its nodes are not those. Undefined: the nodes'. */
  readonly podCIDRs?: readonly string[];
}

/** A member cluster's object on the host. Cluster selectors match its labels. */
export interface Cluster {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: ClusterSpec;
  readonly status?: ClusterStatus;
}

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

/** The longest name of a Cluster: `legation-<name>` is a hostname label of at most 63 characters. */
export const CLUSTER_NAME_MAX = 54;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** Returns the problem of a Cluster's name, as a phrase after the name. Undefined if it is valid. */
export function clusterNameProblem(name: string): string | undefined {
  if (name.length > CLUSTER_NAME_MAX) return `is longer than ${CLUSTER_NAME_MAX} characters`;
  return DNS_LABEL.test(name)
    ? undefined
    : "is not a DNS label (a-z, 0-9 and -, with a letter or digit first and last)";
}

/** Returns the network that a Cluster's member is in. Undefined also if the member is left out of it. */
export function joinedNetworkOf({ spec, status }: Pick<Cluster, "spec" | "status">): string | undefined {
  return status?.conditions?.some(({ type }) => type === NETWORK_CONDITION) === true ? undefined : spec.network;
}

const { probe: PROBE_DEFAULTS } = CLUSTER_DEFAULTS;

const serverRules = [
  {
    rule: "self.matches('^https://([a-zA-Z0-9.-]+|\\\\[[0-9a-fA-F:.]+\\\\])(:[0-9]{1,5})?/?$')",
    message: "must be https://HOST or https://HOST:PORT, without a path, e.g. https://10.0.0.1:6443",
  },
];

const accessPrefixRules = [
  { rule: "!self.startsWith('system:')", message: "must not begin with system:, which is Kubernetes' own prefix" },
];

const networkSchema: z.ZodType<string> = z
  .string()
  .max(63)
  .regex(DNS_LABEL, "must be lower-case letters, digits and -, e.g. corp");

/** A name of a network, which is a DNS label. Empty: none. */
export const networkOrNone: z.ZodType<string> = z.union([z.literal(""), networkSchema]);

const specSchema = z
  .object({
    credentialsSecret: z
      .object({
        name: z.string().min(1).max(253).describe("Name of a Secret in namespace legation-system."),
        key: z.string().min(1).max(253).default(CLUSTER_DEFAULTS.credentialsKey).describe("Key in that Secret."),
      })
      .describe("Secret with the kubeconfig of the member, created by `legation join`."),
    agent: z
      .strictObject({
        homeAPI: z
          .boolean()
          .describe(
            "Pods of the member reach the host's API server through the agent, unless homeAPI names an address. " +
              "`legation join --agent --home-api-through-agent` sets it.",
          )
          .exactOptional(),
      })
      .describe("The member is reached through an agent that runs there. `legation join --agent` sets it.")
      .exactOptional(),
    access: z
      .strictObject({
        prefix: z
          .string()
          .max(ACCESS_PREFIX_MAX)
          .regex(ACCESS_PREFIX_PATTERN)
          .default(ACCESS_PREFIX_DEFAULT)
          .describe("Precedes the names of users and groups in the member; ends with ':', '/' or '#', or is empty.")
          .meta({ "x-kubernetes-validations": accessPrefixRules }),
      })
      .describe(
        "Users of the host reach the member's API server through the host's, as themselves. `legation join --access` sets it. " +
          "Absent: they do not.",
      )
      .exactOptional(),
    createNamespaces: z
      .boolean()
      .default(CLUSTER_DEFAULTS.createNamespaces)
      .describe("Creates a namespace that the member lacks when a pod of it is delegated."),
    scheduleTimeoutSeconds: z
      .int32()
      .min(1)
      .max(3600)
      .default(CLUSTER_DEFAULTS.scheduleTimeoutSeconds)
      .describe("Seconds for the member's scheduler to find a node before the next member is tried."),
    probe: z
      .object({
        periodSeconds: z
          .int32()
          .min(1)
          .max(300)
          .default(PROBE_DEFAULTS.periodSeconds)
          .describe("Seconds between probes."),
        timeoutSeconds: z
          .int32()
          .min(1)
          .max(60)
          .default(PROBE_DEFAULTS.timeoutSeconds)
          .describe("Deadline of a probe in seconds."),
        failureThreshold: z
          .int32()
          .min(1)
          .max(100)
          .default(PROBE_DEFAULTS.failureThreshold)
          .describe("Consecutive failed probes after which the member is not ready."),
      })
      .prefault({})
      .describe("Probe of the member's API server."),
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
          .describe("PEM bundle of the authority for that address; default: the host's own.")
          .exactOptional(),
      })
      .describe("The host's API server as pods in the member reach it; default: the controller's flag.")
      .exactOptional(),
    storageClasses: z
      .record(z.string().max(253), z.string().max(253))
      .describe(
        "Storage classes of the member by those of the host, for PersistentVolumeClaims. Default: the same name.",
      )
      .exactOptional(),
    classSelector: labelSelectorSchema
      .describe(
        "Selects the host's PriorityClasses and RuntimeClasses to copy for the pods that name them, where the member " +
          "lacks one of that name. Absent: none; empty: all.",
      )
      .exactOptional(),
    network: networkSchema
      .describe(
        "Network in which pods of all its clusters reach each other by their addresses: Services lead to their pods in " +
          "the other clusters of it, too. Absent: none.",
      )
      .exactOptional(),
    podCIDRs: z
      .array(
        z
          .string()
          .max(43)
          .regex(/^[0-9a-fA-F:.]+\/[0-9]{1,3}$/, "must be a CIDR, e.g. 10.244.0.0/16"),
      )
      .max(64)
      .describe(
        "Addresses of its pods, which must not be those of another cluster of the network. Absent: the podCIDRs of its nodes, " +
          "which some CNI plugins do not use.",
      )
      .exactOptional(),
    ...clusterPolicyFields,
  })
  .describe("Settings of the member.");

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

/** The schema from which the CustomResourceDefinition is generated. */
export const clusterSchema: z.ZodType<Pick<Cluster, "spec" | "status">> = z
  .object({ spec: specSchema, status: clusterStatusSchema.exactOptional() })
  .describe("A member cluster, where pods of the host run. Cluster selectors match its labels.")
  .meta({ "x-kubernetes-validations": rules });
