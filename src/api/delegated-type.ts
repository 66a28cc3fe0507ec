import { z } from "zod";
import { type ClusterCondition, conditionSchema } from "./cluster-status.ts";
import { type JsonObject, pathOfPointer, valueAt } from "./json.ts";
import type { KubeObject, ObjectMeta } from "./kubernetes.ts";
import { type QueueRule, queueRuleSchema, queueRules } from "./queue-rule.ts";

export interface AnyObject extends KubeObject {
  readonly [field: string]: unknown;
}

/** An API whose annotated objects members get copies of. */
export interface DelegatedTypeSpec {
  /** Absent or empty: the core group. */
  readonly group?: string;
  readonly version: string;
  readonly kind: string;
  /** Name of the resource in URLs, e.g. `certificates`. */
  readonly plural: string;
  readonly scope?: "Namespaced" | "Cluster";
  /** An object runs something, so that one member gets it. Default: all members that placement admits. */
  readonly exclusive?: boolean;
  /** JSON pointer of the field by which the host's controller leaves an object to another manager. */
  readonly managedBy?: string;
  /** JSON pointers of fields that each member keeps for itself; `*` stands for any item of a list or key of a map. */
  readonly retain?: readonly string[];
  /** What is done when a client of a member changes an applied field. Default: `Restore`, it is put back. `Report`: it is told once. */
  readonly drift?: "Restore" | "Report";
  /** JSON pointer of the number that scheduling preferences divide over the members, e.g. `/spec/replicas`. */
  readonly replicas?: string;
  /** Numbers of the status that are summed over the members, e.g. `readyReplicas`. */
  readonly sum?: readonly string[];
  /** CEL expression over `object`, a member's copy: true, false or a condition's status. Default: its condition Ready, or else Available. */
  readonly health?: string;
  /** Fields of the status that CEL expressions compute from the copies. */
  readonly status?: readonly StatusRule[];
  /** How a queue of the host holds objects back. Absent: a queue is not noticed. */
  readonly queue?: QueueRule;
  /** Objects of the type go to the members of the pods that name them. Absent: annotated objects go to members by themselves. */
  readonly follows?: FollowRule;
  /** `Follow`: members get the host's CustomResourceDefinition, too. Default: `Expect`, they have it already. */
  readonly definition?: "Expect" | "Follow";
}

/** How pods name objects of a type, and what a name means. */
export interface FollowRule {
  /** Where pods have the name of an object in their namespace. */
  readonly names: readonly NameRule[];
  /** A pod does not wait for an object that the host lacks. */
  readonly optional?: boolean;
  /** All pods that name an object run in one member, whose status of it comes back. */
  readonly confines?: boolean;
  /** Who creates a pod that names an object needs the verb `delegate` on objects of the type. */
  readonly restricted?: boolean;
}

/** A place in pods that holds the name of an object. One of the three is set. */
export interface NameRule {
  /** JSON pointer; `*` stands for any item of a list or key of a map. */
  readonly field?: string;
  readonly label?: string;
  readonly annotation?: string;
}

/** A field of an object's status, computed from its copies. */
export interface StatusRule {
  /** JSON pointer of the field, e.g. `/status/phase`. */
  readonly path: string;
  /** CEL expression over `members`, each with `name`, `ready` and `object`, and `values`, the field's values in the copies that have it. */
  readonly value: string;
}

/** The condition of a DelegatedType whose expressions compile, and yield values for all objects. */
export const EXPRESSIONS_VALID = "ExpressionsValid";

export interface DelegatedTypeStatus {
  readonly conditions?: readonly ClusterCondition[];
  /** Objects of the type on the host that members get. */
  readonly objects?: number;
  /** Objects that some member lacks, or has in another version. */
  readonly waiting?: number;
  /** Objects that are unhealthy in some member. */
  readonly unhealthy?: number;
}

/** A type of which members get whole objects: the one rule for its group and plural. */
export interface DelegatedType {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: DelegatedTypeSpec;
  readonly status?: DelegatedTypeStatus;
}

/** Returns JSON pointers of the fields that copies of a type lack; `*` stands for any item of a list or key of a map. */
export function keptFields({ spec: { managedBy, retain = [] } }: DelegatedType): string[] {
  return [...(managedBy === undefined ? [] : [managedBy]), ...retain];
}

/** Returns the number that preferences divide. Undefined if the type has none, or the object is without it. */
export function replicasOf(
  object: JsonObject,
  { spec: { replicas } }: Pick<DelegatedType, "spec">,
): number | undefined {
  const value = replicas === undefined ? undefined : valueAt(object, pathOfPointer(replicas));
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;
}

// Their controllers on the host cannot be told to stay away, or Legation copies or delegates them by its own rules.
const RESERVED = {
  "": [
    "bindings",
    "endpoints",
    "events",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "namespaces",
    "replicationcontrollers",
    "serviceaccounts",
  ],
  apps: ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"],
  "discovery.k8s.io": ["endpointslices"],
  "multicluster.x-k8s.io": ["serviceexports"],
  "networking.k8s.io": ["networkpolicies"],
  "node.k8s.io": ["runtimeclasses"],
  "scheduling.k8s.io": ["priorityclasses"],
} as const;
const CLASSES_FOLLOW =
  "members get the classes that their pods name without a DelegatedType; write spec.classSelector in their Cluster instead";
const WHY_RESERVED: Readonly<Partial<Record<string, string>>> = {
  "discovery.k8s.io": "members get the EndpointSlices of a Service without a selector with the Service; name services",
  "multicluster.x-k8s.io": "members get a ServiceExport with its Service, without a DelegatedType; name services",
  "networking.k8s.io": "members get NetworkPolicies for the pods of this cluster without a DelegatedType",
  "node.k8s.io": CLASSES_FOLLOW,
  "scheduling.k8s.io": CLASSES_FOLLOW,
};
const OF_A_CONTROLLER =
  "the host has a controller for this type, which cannot be told to leave an object alone; delegate its pods instead";

const nameRule = {
  rule: "self.metadata.name == (self.spec.?group.orValue('') == '' ? self.spec.plural : self.spec.plural + '.' + self.spec.group)",
  message:
    "metadata.name must be the plural, a dot and the group, e.g. certificates.cert-manager.io; of the core group the plural alone",
};
const managedByRule = {
  rule: "!has(self.spec.managedBy) || self.spec.?exclusive.orValue(false)",
  message: "spec.managedBy: what a controller manages runs in one member; write exclusive: true beside it",
};
const replicasRule = {
  rule: "!has(self.spec.replicas) || !self.spec.?exclusive.orValue(false)",
  message: "spec.replicas: is divided over several members, and an exclusive object goes to one; remove one of the two",
};
const retainRule = {
  rule: "!has(self.spec.replicas) || !has(self.spec.retain) || !(self.spec.replicas in self.spec.retain)",
  message:
    "spec.retain: copies would lack the number that spec.replicas divides over the members; remove one of the two",
};
const definitionRule = {
  rule: "self.spec.?definition.orValue('Expect') != 'Follow' || (has(self.spec.group) && self.spec.group.contains('.'))",
  message: "spec.definition: types of this group have no CustomResourceDefinition that could follow; remove it",
};
const followRules = [
  {
    rule: "has(self.spec.follows) == has(oldSelf.spec.follows)",
    message:
      "spec.follows: objects of a type either go by themselves or follow pods; delete the DelegatedType, and create it anew",
  },
  {
    rule: "!has(self.spec.follows) || !(has(self.spec.exclusive) || has(self.spec.managedBy) || has(self.spec.replicas) || has(self.spec.sum) || has(self.spec.health) || has(self.spec.status))",
    message:
      "spec.follows: objects go where their pods are, and their status is their member's; remove exclusive, managedBy, replicas, sum, health and status",
  },
  {
    rule: "!has(self.spec.follows) || self.spec.?scope.orValue('Namespaced') == 'Namespaced'",
    message: "spec.follows: pods name objects of their own namespace; remove scope: Cluster",
  },
  {
    rule: "!has(self.spec.follows) || self.spec.?group.orValue('') != ''",
    message: "spec.follows: members get what pods name of the core group without a DelegatedType; remove it",
  },
];
const reservedRules = [
  {
    rule: `!(self.spec.?group.orValue('') in ['legation.dev', 'events.k8s.io', 'coordination.k8s.io', 'metrics.k8s.io'])`,
    message: "objects of this group belong to the cluster that they are in",
  },
  ...Object.entries(RESERVED).map(([group, plurals]) =>
    reservedRule({ group, plurals, message: WHY_RESERVED[group] ?? OF_A_CONTROLLER }),
  ),
];

/** Returns the rule that refuses DelegatedTypes of resources. */
export function reservedRule({
  group,
  plurals,
  message,
}: {
  readonly group: string;
  readonly plurals: readonly string[];
  readonly message: string;
}): object {
  const all = plurals.map((plural) => `'${plural}'`).join(", ");
  return { rule: `self.spec.?group.orValue('') != '${group}' || !(self.spec.plural in [${all}])`, message };
}

const generationRule = {
  rule: "!has(self.spec.status) || self.spec.status.all(rule, !rule.path.endsWith('/observedGeneration'))",
  message: "spec.status: observedGeneration is the host's and has no rule; remove it",
};
const LONGEST_EXPRESSION = 1024;

const lowercase = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const pointer = "^(/[^/]+)+$";

const specSchema = z.object({
  group: z
    .string()
    .max(253)
    .describe("API group, e.g. cert-manager.io. Absent or empty: the core group.")
    .exactOptional(),
  version: z
    .string()
    .regex(new RegExp(lowercase))
    .max(63)
    .describe("Version in which objects are read and written, e.g. v1."),
  kind: z.string().min(1).max(63).describe("Kind of the objects, e.g. Certificate."),
  plural: z.string().regex(new RegExp(lowercase)).max(63).describe("Name of the resource in URLs, e.g. certificates."),
  scope: z.enum(["Namespaced", "Cluster"]).describe("Default: Namespaced.").exactOptional(),
  exclusive: z
    .boolean()
    .describe(
      "An object runs something, so that one member gets it. Default: all members that placement admits get it.",
    )
    .exactOptional(),
  managedBy: z
    .string()
    .regex(new RegExp(pointer))
    .max(256)
    .describe(
      "JSON pointer of the field by which the type's controller on the host leaves an object to another manager, e.g. " +
        "/spec/managedBy. Admission sets it to legation.dev/whole, and copies lack it.",
    )
    .exactOptional(),
  retain: z
    .array(z.string().regex(new RegExp(pointer)).max(256))
    .max(64)
    .describe(
      "JSON pointers of fields that each member keeps for itself, e.g. /spec/replicas under an autoscaler of the member. " +
        "A * stands for any item of a list or key of a map.",
    )
    .exactOptional(),
  drift: z
    .enum(["Restore", "Report"])
    .describe(
      "Restore: a field that was applied and that another manager of the member has changed is put back; changed for the third " +
        "time, it is left alone for ten minutes. Report: it is left alone, and told once. Default: Restore.",
    )
    .exactOptional(),
  replicas: z
    .string()
    .regex(new RegExp(pointer))
    .max(256)
    .describe(
      "JSON pointer of the number that an object's legation.dev/scheduling-preferences divide over the members, e.g. " +
        "/spec/replicas. Absent: objects of the type cannot be divided.",
    )
    .exactOptional(),
  sum: z
    .array(z.string().min(1).max(63))
    .max(64)
    .describe("Numbers of the status that are summed over the members, e.g. readyReplicas.")
    .exactOptional(),
  health: z
    .string()
    .min(1)
    .max(LONGEST_EXPRESSION)
    .describe(
      "CEL expression over `object`, the copy as it is in a member, that yields true, false, or the status of a condition. " +
        "A field that is missing makes it Unknown. Default: the condition Ready, or else Available.",
    )
    .exactOptional(),
  status: z
    .array(
      z.object({
        path: z
          .string()
          .regex(/^\/status(\/[^/]+)+$/)
          .max(256)
          .describe("JSON pointer of a field of the status, e.g. /status/phase."),
        value: z
          .string()
          .min(1)
          .max(LONGEST_EXPRESSION)
          .describe(
            "CEL expression over `members`, a list of {name, object} with each member's copy, and `values`, the field's values " +
              "in the copies that have it. Null and a failing expression leave the field out.",
          ),
      }),
    )
    .max(16)
    .describe("Fields of the status that are computed from the copies. Other fields: what all members agree on.")
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["path"] })
    .exactOptional(),
  queue: queueRuleSchema.exactOptional(),
  follows: z
    .object({
      names: z
        .array(
          z
            .object({
              field: z
                .string()
                .regex(/^\/spec(\/[^/]+)+$/)
                .max(256)
                .describe(
                  "JSON pointer into the pod, e.g. /spec/volumes/*/csi/volumeAttributes/secretProviderClass. A * stands for " +
                    "any item of a list or key of a map.",
                )
                .exactOptional(),
              label: z.string().min(1).max(317).describe("Key of a label of the pod.").exactOptional(),
              annotation: z.string().min(1).max(317).describe("Key of an annotation of the pod.").exactOptional(),
            })
            .meta({
              "x-kubernetes-validations": [
                {
                  rule: "[has(self.field), has(self.label), has(self.annotation)].exists_one(is, is)",
                  message: "write one of field, label and annotation",
                },
              ],
            }),
        )
        .min(1)
        .max(16)
        .describe("Where pods have the name of an object of the type in their namespace.")
        .meta({ "x-kubernetes-list-type": "atomic" }),
      optional: z
        .boolean()
        .describe("Pods do not wait for an object that the host lacks. Default: they do.")
        .exactOptional(),
      confines: z
        .boolean()
        .describe(
          "All pods that name an object run in one member, and the status that the object has there is the host's. " +
            "Default: each member of its pods gets it.",
        )
        .exactOptional(),
      restricted: z
        .boolean()
        .describe(
          "Who creates a pod or a workload that names an object needs the verb delegate on objects of the type in its " +
            "namespace. Default: whoever creates delegated pods takes along what they name.",
        )
        .exactOptional(),
    })
    .describe(
      "Objects of the type go to the members of the pods that name them, and need no annotation. Absent: objects with " +
        "the annotation legation.dev/whole go to members.",
    )
    .exactOptional(),
  definition: z
    .enum(["Expect", "Follow"])
    .describe(
      "Follow: members without the CustomResourceDefinition get the host's, and its changes. Default: Expect, members have it.",
    )
    .exactOptional(),
});

const statusSchema = z.object({
  conditions: z
    .array(conditionSchema)
    .max(8)
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
    .exactOptional(),
  objects: z.int().min(0).describe("Objects of the host that members get.").exactOptional(),
  waiting: z.int().min(0).describe("Objects that some member lacks, or has in another version.").exactOptional(),
  unhealthy: z.int().min(0).describe("Objects that are unhealthy in some member.").exactOptional(),
});

/** The schema from which the CustomResourceDefinition is generated. */
export const delegatedTypeSchema: z.ZodType<Pick<DelegatedType, "spec" | "status">> = z
  .object({ spec: specSchema, status: statusSchema.exactOptional() })
  .describe(
    "A type of which members get whole objects: those of opted-in namespaces with the annotation legation.dev/whole.",
  )
  .meta({
    "x-kubernetes-validations": [
      nameRule,
      managedByRule,
      replicasRule,
      retainRule,
      generationRule,
      definitionRule,
      ...queueRules,
      ...followRules,
      ...reservedRules,
    ],
  });
