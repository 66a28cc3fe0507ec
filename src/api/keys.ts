/** Every label, annotation, finalizer, taint and condition key that Legation reads or writes. */

/** API group of Legation's own types and the prefix of all its keys. */
export const GROUP = "legation.dev";

/** Label that opts a namespace in: `annotated`, `all` or `overflow`. Namespaces without it are not touched. */
export const DELEGATION_LABEL = "legation.dev/delegation";

// Annotations of authors on pods, workloads or, as defaults, namespaces.
/** Delegates a pod, `true`, or keeps it on the host, `false`. */
export const DELEGATE_ANNOTATION = "legation.dev/delegate";
/** Members by name, with commas between them: any of them may get the pod. */
export const CLUSTERS_ANNOTATION = "legation.dev/clusters";
/** Members by the labels of their Clusters: a label selector as in `kubectl get -l`. */
export const CLUSTER_SELECTOR_ANNOTATION = "legation.dev/cluster-selector";
/** Required and preferred terms over Clusters: a pod's `nodeAffinity` as JSON or YAML. */
export const CLUSTER_AFFINITY_ANNOTATION = "legation.dev/cluster-affinity";
/** Spread over Clusters: `topologySpreadConstraints` as JSON or YAML. */
export const CLUSTER_SPREAD_ANNOTATION = "legation.dev/cluster-spread";
/** Pods of a namespace with the same value run in one member. */
export const GROUP_ANNOTATION = "legation.dev/group";
/** Groups pods that name no group: `owner`, or `label:` and the key of a label. */
export const GROUP_BY_ANNOTATION = "legation.dev/group-by";
/** Division of a workload's replicas over Clusters, as JSON or YAML. */
export const PREFERENCES_ANNOTATION = "legation.dev/scheduling-preferences";
/** On a ClusterQueue of Kueue: `follow` keeps the quotas of flavors that select members true. */
export const QUOTA_ANNOTATION = "legation.dev/quota";
/** On a ClusterQueue that follows: its part of each flavor's capacity, such as `80%`. */
export const QUOTA_SHARE_ANNOTATION = "legation.dev/quota-share";
/** On a ClusterQueue that follows: the least quota of each flavor, such as `cpu=8,memory=32Gi`. */
export const QUOTA_FLOOR_ANNOTATION = "legation.dev/quota-floor";
/** On an AdmissionCheck of Kueue: Legation answers whether members have room for a workload. */
export const ROOM_CONTROLLER = "legation.dev/room";
/** On an AdmissionCheck of Kueue: the time in which an admitted workload's pods have to find a place, e.g. `5m`. */
export const PLACE_WITHIN_ANNOTATION = "legation.dev/place-within";
/** `never`: the pod waits for a lost member instead of being evicted. */
export const FAILOVER_ANNOTATION = "legation.dev/failover";
/** The only value: pods wait for a lost member without end. */
export const FAILOVER_NEVER = "never";
/** Delegates a pod from the start, or only once the host has no place for it: `always` or `overflow`. */
export const MODE_ANNOTATION = "legation.dev/mode";
/** Time without a node on the host before the pod overflows, e.g. `30s`. */
export const OVERFLOW_AFTER_ANNOTATION = "legation.dev/overflow-after";
/** JSON patches of a pod in some members, as JSON or YAML. */
export const OVERRIDES_ANNOTATION = "legation.dev/overrides";
/** The API server of the pod's in-cluster configuration: `host`, `member` or `none`. */
export const API_ANNOTATION = "legation.dev/api";

/** On a Service without a selector: the Service of its namespace to whose pods Legation carries each connection. */
export const RELAY_ANNOTATION = "legation.dev/relay";
/** Annotation on the EndpointSlices of a relayed Service: the relays of the members that its namespace has pods in, as JSON. */
export const RELAY_IN_MEMBERS_ANNOTATION = "legation.dev/relay-in-members";

/** Annotation on a pod: the workload, as `Deployment/web`, whose wishes count for it. Admission writes it into templates. */
export const WISHES_OF_ANNOTATION = "legation.dev/wishes-of";
/** Label of workloads whose wishes their pods do not carry, by which the controller's watches select. */
export const WISHES_LABEL = "legation.dev/wishes";
export const WISHES_VALUE = "true";
/** Annotation on a workload: keys of wishes, comma-separated, of which the pod template has an outdated copy. */
export const OUTDATED_ANNOTATION = "legation.dev/outdated-in-template";
/** Objects of restricted types that a pod names, for which its author needs the verb `delegate`. */
export const RESTRICTED_ANNOTATION = "legation.dev/restricted-objects";

/** Gives an object to members as it is: `true`. Also the label by which the controller's watches select such objects and copies. */
export const WHOLE_KEY = "legation.dev/whole";
export const WHOLE_VALUE = "true";
/** Annotation on a divided Job, beside the members' names: JSON of each member's share, and of its last status in it. */
export const SHARES_ANNOTATION = "legation.dev/shares";
/** The label of an object that members are not to have any more. */
export const NOT_WHOLE_VALUE = "false";
/** Annotation: `adopt` takes over an object of the member's own that is in a copy's place; `refuse`, the default, does not. */
export const ON_CONFLICT_ANNOTATION = "legation.dev/on-conflict";
/** Annotation: `orphan` leaves copies in members when the object is deleted; `delete`, the default, does not. */
export const ON_DELETE_ANNOTATION = "legation.dev/on-delete";
/** Annotation on a whole object: JSON of each member's copy, with its state. */
export const MEMBERS_ANNOTATION = "legation.dev/members";
/** Finalizer that keeps a whole object until its copies are confirmed gone. */
export const WHOLE_FINALIZER = "legation.dev/whole";
/** Finalizer of a DelegatedType: its objects are released first. */
export const TYPE_FINALIZER = "legation.dev/delegated-type";
/** Label of the host's roles for one DelegatedType, which `uninstall` removes. */
export const TYPE_ROLE_LABEL = "legation.dev/delegated-type";
/** Label: roles of the host whose rules the controller has. */
export const AGGREGATE_TO_CONTROLLER_LABEL = "legation.dev/aggregate-to-controller";
/** `spec.managedBy` of a whole Job: the host's Job controller leaves it alone (KEP-4368). */
export const WHOLE_MANAGED_BY = "legation.dev/whole";

// Marks of Legation on a proxy pod.
/** Label of a proxy, by which the controller's watch selects. */
export const PROXY_LABEL = "legation.dev/proxy";
export const PROXY_LABEL_VALUE = "true";
/** The label's value on a pod in overflow mode, until the Binding to a virtual node changes it. */
export const OVERFLOW_LABEL_VALUE = "overflow";
/** Label of a proxy, and of its delegate: the slot of their namespace, by which API servers select a shard's pods. */
export const SLOT_LABEL = "legation.dev/slot";
/** Finalizer that keeps a proxy until its delegate is confirmed gone. */
export const DELEGATE_FINALIZER = "legation.dev/delegate";
/** `spec.schedulerName` of every proxy; no scheduler of the host answers to it. */
export const SCHEDULER_NAME = "legation";
/** The scheduler name that API servers default to. */
export const DEFAULT_SCHEDULER = "default-scheduler";
/** The author's own `spec.schedulerName` of a proxy. */
export const SCHEDULER_NAME_ANNOTATION = "legation.dev/scheduler-name";
/** The member that has a pod, a claim, a whole Job or an exclusive object; on a pod the Binding writes it. */
export const CLUSTER_ANNOTATION = "legation.dev/cluster";
/** The delegate's uid, which the Binding writes; status comes from no other pod. */
export const DELEGATE_UID_ANNOTATION = "legation.dev/delegate-uid";
/** The delegate's node in the member, which the Binding writes. */
export const MEMBER_NODE_ANNOTATION = "legation.dev/member-node";
/** Kubernetes' deletion cost: a shrinking ReplicaSet deletes the lowest first. Authors may write it, too. */
export const DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost";
/** The deletion cost that Legation wrote; a different one is the author's. */
export const OWN_DELETION_COST_ANNOTATION = "legation.dev/deletion-cost";
/** Condition on a waiting proxy of version 0.1. Removed where it says False. */
export const PLACED_CONDITION = "legation.dev/Placed";
/** Condition on a proxy: True while a cluster refuses a write for the pod. */
export const REFUSED_CONDITION = "legation.dev/Refused";
/** Condition on a proxy: names the containers that its delegate has beyond the proxy's. */
export const ADDED_CONDITION = "legation.dev/AddedContainers";

// Marks of Legation on a PersistentVolumeClaim of the host, beside the member's name.
/** Annotation: JSON `{uid, phase, capacity, volumeName}` of the member's claim. */
export const CLAIM_STATUS_ANNOTATION = "legation.dev/claim-status";

// Marks of Legation on objects in members.
/** Label: the host's id (uid of its kube-system namespace). Objects without it are not Legation's. */
export const HOST_LABEL = "legation.dev/host";
/** Label: ClusterRoles of a member whose rules a host has: `true` for all hosts, else the host's id. */
export const AGGREGATE_TO_HOST_LABEL = "legation.dev/aggregate-to-host";
/** Label on pods of a whole object that a queue holds back: the object's uid on the host. */
export const QUEUED_OBJECT_LABEL = "legation.dev/queued-object";
/** Annotation: JSON of what was last applied to a copy of a whole object. */
export const APPLIED_ANNOTATION = "legation.dev/applied";
/** Label: a copy of an object that delegates need. */
export const COPY_LABEL = "legation.dev/copy";
export const COPY_LABEL_VALUE = "true";
/** Annotation on a NetworkPolicy of the host: `false` keeps it out of members. */
export const COPY_ANNOTATION = "legation.dev/copy";
/** Annotation on the copy of a Service, written before its ServiceExport is created. */
export const EXPORTED_ANNOTATION = "legation.dev/exported";
/** Annotation: JSON `{cluster, kind, namespace, name, uid}` of the host object behind a member object. */
export const OWNER_ANNOTATION = "legation.dev/owner";
/** Annotation on a delegate: its proxy's uid, for pods that read their own by the downward API. */
export const PROXY_UID_ANNOTATION = "legation.dev/proxy-uid";
/**
 * Annotation on a delegate: JSON `{labels, annotations, gates, gatePrints, conditions, spec}` that came from its
 * proxy.
 */
export const FORWARDED_ANNOTATION = "legation.dev/forwarded";

/** Label on a delegate's token Secret, and on nothing else. */
export const HOME_API_LABEL = "legation.dev/home-api";
export const HOME_API_LABEL_VALUE = "true";
/** Annotation on a delegate's token Secret: when to replace its tokens (RFC 3339). */
export const RENEW_AT_ANNOTATION = "legation.dev/renew-at";

// Virtual nodes.
/** Kubernetes keeps the Leases of nodes there. */
export const NODE_LEASE_NAMESPACE = "kube-node-lease";
/** Label on a virtual node: its Cluster's name. */
export const VIRTUAL_NODE_LABEL = "legation.dev/cluster";
/** Kubernetes' label of nodes that the node lifecycle controller leaves out when it counts lost nodes. */
export const EXCLUDE_DISRUPTION_LABEL = "node.kubernetes.io/exclude-disruption";
/** Taint (NoSchedule) that keeps ordinary pods off virtual nodes. */
export const VIRTUAL_NODE_TAINT = "legation.dev/virtual-node";
/** Annotation on a virtual node: keys of labels from its Cluster, comma-separated. */
export const NODE_LABELS_ANNOTATION = "legation.dev/node-labels";
/** Annotation on a virtual node: taints from its Cluster, as JSON. */
export const NODE_TAINTS_ANNOTATION = "legation.dev/node-taints";
/** A virtual node is named `legation-<cluster>`. */
export const VIRTUAL_NODE_PREFIX = "legation-";

/** Annotation on a member's Secret: when its token expires (RFC 3339). */
export const TOKEN_EXPIRES_ANNOTATION = "legation.dev/token-expires";

/** Annotation on a host's access in a member: the name by which that host calls itself. */
export const HOST_NAME_ANNOTATION = "legation.dev/host-name";

/** Annotation on a Cluster: uid of its member's kube-system namespace, written by `legation join`. */
export const MEMBER_UID_ANNOTATION = "legation.dev/member-uid";

/** Label that asks for a ClusterProfile of each Cluster in a namespace: `true`. */
export const CLUSTER_PROFILES_LABEL = "legation.dev/cluster-profiles";
export const CLUSTER_PROFILES_VALUE = "true";
/** Label of KEP-4322 on a ClusterProfile: the name of its cluster manager. */
export const CLUSTER_MANAGER_LABEL = "x-k8s.io/cluster-manager";
/** `spec.clusterManager.name` of Legation's ClusterProfiles. Those of other managers are left alone. */
export const CLUSTER_MANAGER = "legation";
/** Property of a ClusterProfile: uid of the member's kube-system namespace. */
export const MEMBER_UID_PROPERTY = "legation.dev/member-uid";

/** Annotation on objects that `legation get -o json` prints: the cluster that each was read from. Never stored. */
export const READ_FROM_ANNOTATION = "access.legation.dev/cluster";

/** Finalizer on a Cluster, until its virtual node and Lease are removed. */
export const CLUSTER_FINALIZER = "legation.dev/virtual-node";

/** Namespace of Legation's own objects, on the host and in members. */
export const SYSTEM_NAMESPACE = "legation-system";
/** Namespace of the page for a team, which holds nothing else. */
export const UI_NAMESPACE = "legation-ui";
/** Label on every installed object, by which the page's namespace is known. */
export const PART_OF_LABEL = "app.kubernetes.io/part-of";
/** Label on every object that Legation's command line creates. */
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
export const MANAGED_BY = "legation";
/** Value of that label on objects of a Helm release. */
export const HELM = "Helm";
/** Labels on every installed object, by which `uninstall` and an upgrade find it. */
export const INSTALLED_LABELS: Readonly<Record<string, string>> = {
  [MANAGED_BY_LABEL]: MANAGED_BY,
  [PART_OF_LABEL]: "legation",
};
/** Name of the controllers' Lease there. */
export const CONTROLLER_LEASE = "legation-controller";
/** Annotation on a shard's Lease: the number of shards that its holder counts. None for a single shard. */
export const SHARDS_ANNOTATION = "legation.dev/shards";
/** Annotation on the controllers' Lease: the intervals without a leader. */
export const LEADERLESS_ANNOTATION = "legation.dev/unled";

/** Annotation on a member's Secret: SHA-256 (hex) of the token with which its agent asks for its first certificate. */
export const AGENT_TOKEN_ANNOTATION = "legation.dev/agent-token-sha256";
/** Annotation on a member's Secret: when the token of its agent expires (RFC 3339). */
export const AGENT_TOKEN_EXPIRES_ANNOTATION = "legation.dev/agent-token-expires";
/** Annotation on a member's Secret: SHA-256 (hex) of the key that used its agent's token. No other key may use it. */
export const AGENT_KEY_ANNOTATION = "legation.dev/agent-key-sha256";
/**
 * Annotation on a member's Secret: the join whose agents may connect, by the SHA-256 (hex) of the first key of its agent. Agents'
 * certificates name their join.
 */
export const AGENT_JOIN_ANNOTATION = "legation.dev/agent-join";
/** Name of the Secret with the authority of the hub and its agents. */
export const HUB_SECRET = "legation-hub";
/** Annotation on the Secret with the hub's authority: `HOST:PORT` under which agents reach the hub, comma-separated. */
export const HUB_ADDRESSES_ANNOTATION = "legation.dev/hub-addresses";

export function virtualNodeName(cluster: string): string {
  return VIRTUAL_NODE_PREFIX + cluster;
}

/** Returns the `spec.providerID` of a member's virtual node, which is immutable. */
export function providerIdOf(cluster: string): string {
  return `legation://${cluster}`;
}

/** Returns the member of a virtual node. Undefined for other nodes and for none. */
export function clusterOfNode(nodeName: string | undefined): string | undefined {
  return nodeName?.startsWith(VIRTUAL_NODE_PREFIX) === true ? nodeName.slice(VIRTUAL_NODE_PREFIX.length) : undefined;
}

/** Annotations that only Legation writes; never forwarded. */
export const INTERNAL_ANNOTATIONS: ReadonlySet<string> = new Set([
  SCHEDULER_NAME_ANNOTATION,
  CLUSTER_ANNOTATION,
  SHARES_ANNOTATION,
  MEMBERS_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  OWN_DELETION_COST_ANNOTATION,
  OWNER_ANNOTATION,
  PROXY_UID_ANNOTATION,
  FORWARDED_ANNOTATION,
  OUTDATED_ANNOTATION,
  RESTRICTED_ANNOTATION,
]);

/** Annotations of OpenShift's admission: each cluster writes its own. */
export const ADMITTED_BY_ANNOTATIONS: ReadonlySet<string> = new Set([
  "openshift.io/scc",
  "security.openshift.io/validated-scc-subject-type",
]);

/** Names the requests and limits that LimitRanger gave a pod. */
export const LIMIT_RANGER_ANNOTATION = "kubernetes.io/limit-ranger";

/** Allows a cluster autoscaler to evict a pod. */
export const SAFE_TO_EVICT_ANNOTATION = "cluster-autoscaler.kubernetes.io/safe-to-evict";
