/** Every label, annotation, finalizer, taint and condition key that Legation reads or writes. */

/** API group of Legation's own types and the prefix of all its keys. */
export const GROUP = "legation.dev";

/** Label on a namespace that opts it in: `annotated`, `all` or `overflow`. Without it nothing in the namespace is touched. */
export const DELEGATION_LABEL = "legation.dev/delegation";

// Annotations of authors, on a pod, a workload or (as a default) a namespace.
export const DELEGATE_ANNOTATION = "legation.dev/delegate";
export const CLUSTERS_ANNOTATION = "legation.dev/clusters";
export const CLUSTER_SELECTOR_ANNOTATION = "legation.dev/cluster-selector";
/** Terms over Clusters that must or should match: a pod's `nodeAffinity` as JSON or YAML. */
export const CLUSTER_AFFINITY_ANNOTATION = "legation.dev/cluster-affinity";
/** How pods are spread over Clusters: `topologySpreadConstraints` as JSON or YAML. */
export const CLUSTER_SPREAD_ANNOTATION = "legation.dev/cluster-spread";
/** Pods of a namespace with the same value run in one and the same member. */
export const GROUP_ANNOTATION = "legation.dev/group";
/** Groups pods that name no group: `owner`, or `label:` and the key of a label. */
export const GROUP_BY_ANNOTATION = "legation.dev/group-by";
/** How a workload's replicas are divided over Clusters, as JSON or YAML. */
export const PREFERENCES_ANNOTATION = "legation.dev/scheduling-preferences";
export const FAILOVER_ANNOTATION = "legation.dev/failover";
/** The only value: pods wait for their member, however long it is lost. */
export const FAILOVER_NEVER = "never";
/** Delegates a pod from the start, or only once the host has no place for it: `always` or `overflow`. */
export const MODE_ANNOTATION = "legation.dev/mode";
/** How long the host must have found a pod unschedulable before it overflows, e.g. `30s`. */
export const OVERFLOW_AFTER_ANNOTATION = "legation.dev/overflow-after";
/** JSON patches of a pod in some members, as JSON or YAML. */
export const OVERRIDES_ANNOTATION = "legation.dev/overrides";
/** Which API server the pod's service account talks to: `host`, `member` or `none`. */
export const API_ANNOTATION = "legation.dev/api";

// Marks of Legation on a proxy pod.
/** Label that marks a proxy: the controller's watch selects on it. */
export const PROXY_LABEL = "legation.dev/proxy";
export const PROXY_LABEL_VALUE = "true";
/** The label's value on a pod in overflow mode until its Binding to a virtual node makes it a proxy, in that same write. */
export const OVERFLOW_LABEL_VALUE = "overflow";
/** Finalizer that holds a proxy until its delegate is known to be gone. */
export const DELEGATE_FINALIZER = "legation.dev/delegate";
/** `spec.schedulerName` of every proxy: no scheduler of the host answers to it. */
export const SCHEDULER_NAME = "legation";
/** The scheduler that defaulting gives to every pod without one; a member's defaulting does the same. */
export const DEFAULT_SCHEDULER = "default-scheduler";
/** The author's own `spec.schedulerName`, kept while the proxy carries Legation's. */
export const SCHEDULER_NAME_ANNOTATION = "legation.dev/scheduler-name";
/** Written by the Binding: the member cluster, the delegate's uid and its node there. */
export const CLUSTER_ANNOTATION = "legation.dev/cluster";
export const DELEGATE_UID_ANNOTATION = "legation.dev/delegate-uid";
export const MEMBER_NODE_ANNOTATION = "legation.dev/member-node";
/** Kubernetes' deletion cost: a shrinking ReplicaSet deletes the pod with the lowest first. Authors write it, too. */
export const DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost";
/** The deletion cost that Legation has written; one that is different is somebody else's. */
export const OWN_DELETION_COST_ANNOTATION = "legation.dev/deletion-cost";
/** Pod condition that earlier versions wrote on a proxy without a member. It is taken off where it says False. */
export const PLACED_CONDITION = "legation.dev/Placed";
/** Pod condition on a proxy: True while a cluster refuses a write that Legation makes for the pod. */
export const REFUSED_CONDITION = "legation.dev/Refused";

// Marks of Legation on a PersistentVolumeClaim of the host, beside the member's name.
/** Annotation: JSON `{uid, phase, capacity, volumeName}` of the claim in the member that stands for it. */
export const CLAIM_STATUS_ANNOTATION = "legation.dev/claim-status";

// Marks of Legation on objects it makes in a member.
/** Label: the host's id (uid of its kube-system namespace). What lacks it is not Legation's. */
export const HOST_LABEL = "legation.dev/host";
/** Label: a copy of an object that delegates there need. */
export const COPY_LABEL = "legation.dev/copy";
export const COPY_LABEL_VALUE = "true";
/** Annotation on a NetworkPolicy of the host: `false` keeps it from members. */
export const COPY_ANNOTATION = "legation.dev/copy";
/** Annotation on the copy of a Service: a ServiceExport was made beside it, or is about to be. */
export const EXPORTED_ANNOTATION = "legation.dev/exported";
/** Annotation: JSON `{cluster, namespace, name, uid}` of the host object that a member object stands for. */
export const OWNER_ANNOTATION = "legation.dev/owner";
/** Annotation on a delegate: its proxy's uid, for a pod that asks for its own by the downward API. */
export const PROXY_UID_ANNOTATION = "legation.dev/proxy-uid";
/** Annotation on a delegate: JSON `{labels, annotations, gates, gatePrints, conditions, spec}`, what it has from its proxy; all else is the member's. */
export const FORWARDED_ANNOTATION = "legation.dev/forwarded";

/** Label on a Secret that holds a delegate's tokens for the host's API server, and on nothing else. */
export const HOME_API_LABEL = "legation.dev/home-api";
export const HOME_API_LABEL_VALUE = "true";
/** Annotation on such a Secret: when its tokens are to be replaced (RFC 3339). */
export const RENEW_AT_ANNOTATION = "legation.dev/renew-at";

// Virtual nodes.
/** Label on a virtual node: the name of the Cluster it stands for. */
export const VIRTUAL_NODE_LABEL = "legation.dev/cluster";
/** Kubernetes' label of nodes that the node lifecycle controller ignores when it judges whether a zone's nodes are lost. */
export const EXCLUDE_DISRUPTION_LABEL = "node.kubernetes.io/exclude-disruption";
/** Taint (NoSchedule) that keeps ordinary pods off virtual nodes. */
export const VIRTUAL_NODE_TAINT = "legation.dev/virtual-node";
/** Annotation on a virtual node: the label keys it has from its Cluster, comma-separated; others are not touched. */
export const NODE_LABELS_ANNOTATION = "legation.dev/node-labels";
/** Annotation on a virtual node: JSON, the taints it has from its Cluster; others are not touched. */
export const NODE_TAINTS_ANNOTATION = "legation.dev/node-taints";
/** A virtual node is named `legation-<cluster>`. */
export const VIRTUAL_NODE_PREFIX = "legation-";

/** Annotation on a member's Secret: when its token ends (RFC 3339); the controller renews it before. */
export const TOKEN_EXPIRES_ANNOTATION = "legation.dev/token-expires";

/** Annotation on a Cluster: the uid of its member's kube-system namespace, as `legation join` found it. */
export const MEMBER_UID_ANNOTATION = "legation.dev/member-uid";

/** Finalizer on a Cluster: its virtual node and lease are removed before it goes. */
export const CLUSTER_FINALIZER = "legation.dev/virtual-node";

/** Namespace of Legation's own objects, on the host and in members. */
export const SYSTEM_NAMESPACE = "legation-system";
/** Name of the Lease there that the controller which leads holds. */
export const CONTROLLER_LEASE = "legation-controller";

/** Name of the virtual node of a member cluster. */
export function virtualNodeName(cluster: string): string {
  return VIRTUAL_NODE_PREFIX + cluster;
}

/** `spec.providerID` of a member's virtual node, which nobody can change. */
export function providerIdOf(cluster: string): string {
  return `legation://${cluster}`;
}

/** The member cluster that a virtual node stands for; undefined for any other node, and for none. */
export function clusterOfNode(nodeName: string | undefined): string | undefined {
  return nodeName?.startsWith(VIRTUAL_NODE_PREFIX) === true ? nodeName.slice(VIRTUAL_NODE_PREFIX.length) : undefined;
}

/** Annotations on pods that Legation writes itself: no author's, and none that a delegate has from its proxy. */
export const INTERNAL_ANNOTATIONS: ReadonlySet<string> = new Set([
  SCHEDULER_NAME_ANNOTATION,
  CLUSTER_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OWN_DELETION_COST_ANNOTATION,
  OWNER_ANNOTATION,
  PROXY_UID_ANNOTATION,
  FORWARDED_ANNOTATION,
]);

/** Annotations by which OpenShift's admission says why it took a pod: each cluster writes its own. */
export const ADMITTED_BY_ANNOTATIONS: ReadonlySet<string> = new Set([
  "openshift.io/scc",
  "security.openshift.io/validated-scc-subject-type",
]);

/** Tells a cluster autoscaler that a pod may be moved, though no workload of its cluster makes it again. */
export const SAFE_TO_EVICT_ANNOTATION = "cluster-autoscaler.kubernetes.io/safe-to-evict";
