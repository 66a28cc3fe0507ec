import { z } from "zod";

/** A condition as in `metav1.Condition`. */
export interface ClusterCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** A group of similar nodes of a member that take pods. */
export interface NodeKind {
  readonly count: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /** Resources of the largest of these nodes. */
  readonly allocatable: Readonly<Record<string, string>>;
}

export interface DeviceClassStatus {
  readonly name: string;
  /** The driver whose devices it selects. Undefined if its expressions do not simply name one. */
  readonly driver?: string;
  /** Name of the extended resource by which pods get its devices without a claim. */
  readonly extendedResource?: string;
}

/** DeviceClasses and drivers of a member, on which pods with ResourceClaims depend. */
export interface DevicesStatus {
  /** The member serves the API. */
  readonly served: boolean;
  readonly classes: readonly DeviceClassStatus[];
  /** Drivers of these classes that have published devices. */
  readonly drivers: readonly string[];
}

/** Type of the condition that says what blocks a Cluster's deletion. */
export const RELEASED_CONDITION = "Released";

/** Type of the condition that says why a member is left out of its network. */
export const NETWORK_CONDITION = "NetworkJoined";

/** Reason of the Ready condition of a Cluster whose member answers, and takes long to list its pods or nodes. */
export const SLOW = "Slow";

/** Reason of the Ready condition of a Cluster whose member joined under another name already. */
export const JOINED_TWICE = "JoinedTwice";

/** The agent of a member as it last connected. */
export interface AgentStatus {
  /** Version of its program. */
  readonly version?: string;
  /** RFC 3339. */
  readonly connectedSince: string;
  /** When its certificate for the hub expires; RFC 3339. */
  readonly certificateExpires?: string;
  /** IP address at which pods of the member reach the host's API server through it. Absent: they do not. */
  readonly homeAddress?: string;
}

export interface ClusterStatus {
  readonly observedGeneration?: number;
  /** How the controller reaches the member. */
  readonly connection?: "Direct" | "Agent";
  readonly agent?: AgentStatus;
  /** Version of its API server, e.g. v1.36.3. */
  readonly version?: string;
  /** Address of its API server, reachable or not. */
  readonly server?: string;
  readonly nodes?: number;
  /** Proxies of this host bound to it. */
  readonly pods?: number;
  readonly capacity?: Readonly<Record<string, string>>;
  readonly allocatable?: Readonly<Record<string, string>>;
  /** The largest amount of each resource on one node. */
  readonly largestNode?: Readonly<Record<string, string>>;
  /** A summary of its nodes. Undefined if they differ too much. */
  readonly nodeKinds?: readonly NodeKind[];
  /** Labels of nodes that `nodeKinds` leaves out. */
  readonly unlistedNodeLabels?: readonly string[];
  /** Proxies bound to it that have not ended, and those of them that run. */
  readonly unfinishedPods?: number;
  readonly runningPods?: number;
  /** Requests of the unfinished ones. */
  readonly requested?: Readonly<Record<string, string>>;
  /** Requests of other tenants' pods, as last read. */
  readonly requestedByOthers?: Readonly<Record<string, string>>;
  /** Undefined if no claims follow pods, the member may not be asked, or it has too many classes. */
  readonly devices?: DevicesStatus;
  /** Held delegates: kept although the restored host does not know them. */
  readonly heldDelegates?: number;
  readonly conditions?: readonly ClusterCondition[];
}

const resourceList = z.record(z.string(), z.string());

export const conditionSchema: z.ZodType<ClusterCondition> = z.object({
  type: z.string().min(1).max(316),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string().max(1024),
  message: z.string().max(32_768),
  lastTransitionTime: z.string().meta({ format: "date-time" }),
  observedGeneration: z.number().int().min(0).meta({ format: "int64" }).exactOptional(),
});

export const clusterStatusSchema: z.ZodType<ClusterStatus> = z
  .object({
    observedGeneration: z.number().int().min(0).meta({ format: "int64" }).exactOptional(),
    connection: z
      .enum(["Direct", "Agent"])
      .describe("How the controller reaches the member: directly, or through the agent that runs there.")
      .exactOptional(),
    agent: z
      .object({
        version: z.string().max(64).describe("Version of its program.").exactOptional(),
        connectedSince: z.string().meta({ format: "date-time" }),
        certificateExpires: z
          .string()
          .meta({ format: "date-time" })
          .describe("When its certificate for the hub expires. It renews it after two thirds of its life.")
          .exactOptional(),
        homeAddress: z
          .string()
          .max(45)
          .describe("IP address at which pods of the member reach this cluster's API server through it.")
          .exactOptional(),
      })
      .describe("The agent of the member as it last connected.")
      .exactOptional(),
    version: z.string().describe("Version of the member's API server.").exactOptional(),
    server: z.string().describe("Address at which the controller reaches the member's API server.").exactOptional(),
    nodes: z.int32().min(0).describe("Nodes of the member, unschedulable ones included.").exactOptional(),
    pods: z.int32().min(0).describe("Proxies of this host bound to the member.").exactOptional(),
    unfinishedPods: z.int32().min(0).describe("Those of them that have not ended.").exactOptional(),
    runningPods: z.int32().min(0).describe("Those of them that run.").exactOptional(),
    capacity: resourceList.describe("Sum over the member's nodes.").exactOptional(),
    allocatable: resourceList.describe("Sum over the member's schedulable nodes.").exactOptional(),
    largestNode: resourceList.describe("The largest amount of each resource on one schedulable node.").exactOptional(),
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
      .describe("Schedulable nodes, grouped by labels, taints and size; for `legation plan`.")
      .exactOptional(),
    unlistedNodeLabels: z
      .array(z.string())
      .describe("Labels of nodes that nodeKinds leaves out because they would make too many kinds.")
      .exactOptional(),
    requested: resourceList.describe("Requests of those that have not ended.").exactOptional(),
    requestedByOthers: resourceList.describe("Requests of other tenants' pods, as last read.").exactOptional(),
    devices: z
      .object({
        served: z.boolean().describe("The member serves resource.k8s.io/v1."),
        classes: z
          .array(
            z.object({
              name: z.string(),
              driver: z.string().describe("The driver whose devices it selects.").exactOptional(),
              extendedResource: z.string().describe("Its spec.extendedResourceName.").exactOptional(),
            }),
          )
          .describe("DeviceClasses."),
        drivers: z.array(z.string()).describe("Drivers of these classes that have published devices."),
      })
      .describe("DeviceClasses and drivers of the member, where ResourceClaims follow pods; for `legation plan`.")
      .exactOptional(),
    heldDelegates: z
      .int32()
      .describe("Held delegates: kept although the host, which was restored from a backup, does not know them.")
      .exactOptional(),
    conditions: z
      .array(conditionSchema)
      .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
      .exactOptional(),
  })
  .describe("Observed state of the member.");
