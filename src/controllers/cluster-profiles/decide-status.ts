import { clusterProxyPath } from "../../api/access.ts";
import type { Cluster } from "../../api/cluster.ts";
import { JOINED_TWICE, SLOW } from "../../api/cluster-status.ts";
import { isShown, type WantedCondition, withTransitionTime } from "../../api/conditions.ts";
import { defined } from "../../api/defined.ts";
import { isJsonObject, jsonEqual, valueAt } from "../../api/json.ts";
import { MEMBER_UID_ANNOTATION, MEMBER_UID_PROPERTY } from "../../api/keys.ts";
import {
  type AccessProvider,
  type ClusterProfile,
  type ClusterProfileStatus,
  type ClusterProperty,
  type Stored,
  timestamp,
} from "../../api/kubernetes.ts";

/** The host's API server as readers of ClusterProfiles reach it. */
export interface HostAddress {
  readonly server: string;
  /** Base64 of a PEM bundle. Undefined until it is known. */
  readonly certificateAuthorityData: string | undefined;
}

/** The status of a Cluster's profile, without times. */
export interface WantedStatus {
  readonly version?: { readonly kubernetes: string };
  readonly properties: readonly ClusterProperty[];
  readonly accessProviders: readonly AccessProvider[];
  readonly conditions: readonly WantedCondition[];
}

/** Name of the access provider, to which readers assign a credential plugin. */
const ACCESS_PROVIDER = "legation";
export const STATUS_MANAGER = "legation";
/** Extension whose content client-go hands to credential plugins; `clusterName` is what upstream's plugins read. */
const EXEC_EXTENSION = "client.authentication.k8s.io/exec";
// Limits of the ClusterProfile's schema.
const LONGEST_NAME = 253;

/** Returns the status that tells readers of the Cluster. It holds nothing that changes with pods or nodes. */
export function wantedStatus(cluster: Stored<Cluster>, host: HostAddress): WantedStatus {
  const { version } = cluster.status ?? {};
  return {
    ...(version === undefined ? {} : { version: { kubernetes: version } }),
    properties: properties(cluster),
    accessProviders: accessProviders(cluster, host),
    conditions: [controlPlaneHealthy(cluster), joined(cluster)],
  };
}

/** Operators describe members by the labels of Clusters. */
function properties({ metadata }: Stored<Cluster>): ClusterProperty[] {
  const { labels = {}, annotations = {} } = metadata;
  const all = { ...labels, [MEMBER_UID_PROPERTY]: annotations[MEMBER_UID_ANNOTATION] ?? "" };
  return Object.entries(all)
    .filter(([name, value]) => name.length <= LONGEST_NAME && value !== "")
    .map(([name, value]) => ({ name, value }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function accessProviders({ metadata: { name }, spec }: Stored<Cluster>, host: HostAddress): AccessProvider[] {
  const { server, certificateAuthorityData } = host;
  if (spec.access === undefined || certificateAuthorityData === undefined) return [];
  const cluster = {
    server: `${server.replace(/\/$/, "")}${clusterProxyPath(name)}`,
    "certificate-authority-data": certificateAuthorityData,
    extensions: [{ name: EXEC_EXTENSION, extension: { clusterName: name } }],
  };
  return [{ name: ACCESS_PROVIDER, cluster }];
}

/** Messages are fixed, since a probe's error may change with every probe. */
function controlPlaneHealthy({ metadata: { name }, status }: Stored<Cluster>): WantedCondition {
  const type = "ControlPlaneHealthy";
  const ready = status?.conditions?.find((condition) => condition.type === "Ready");
  switch (ready?.reason) {
    case undefined:
      return { type, status: "Unknown", reason: "NotProbed", message: "its API server has not been probed yet" };
    case "ProbeSucceeded":
    case SLOW:
    // The member answers; only the host refuses its Node.
    case "NodeRefused":
      return { type, status: "True", reason: "ProbeSucceeded", message: "its API server is ready" };
    case "ProbeFailed":
      return {
        type,
        status: "False",
        reason: "ProbeFailed",
        message: `its probe fails: see the status of Cluster ${name}`,
      };
    default: {
      const message = `another cluster answers for it: see the status of Cluster ${name}`;
      return { type, status: "Unknown", reason: "NotProbed", message };
    }
  }
}

function joined({ metadata: { name, deletionTimestamp }, status }: Stored<Cluster>): WantedCondition {
  const type = "Joined";
  const not = (reason: string, message: string): WantedCondition => ({ type, status: "False", reason, message });
  if (deletionTimestamp !== undefined) return not("Leaving", `Cluster ${name} is being deleted`);
  const ready = status?.conditions?.find((condition) => condition.type === "Ready");
  if (ready?.reason === JOINED_TWICE || ready?.reason === "AnotherCluster") {
    return not(ready.reason, `see the status of Cluster ${name}`);
  }
  if (status?.version === undefined) return not("NeverConnected", "its API server has not answered yet");
  return { type, status: "True", reason: "Joined", message: `pods can be delegated by Cluster ${name}` };
}

/** Reports whether the profile lacks a part of the wanted status, or shows an earlier part of Legation's. */
export function statusDiffers(profile: Stored<ClusterProfile>, wanted: WantedStatus): boolean {
  const { version = {}, properties: shown, accessProviders: ways, conditions } = profile.status ?? {};
  return (
    !jsonEqual(version, wanted.version ?? {}) ||
    !jsonEqual(own(profile, "properties", shown ?? [], wanted.properties), wanted.properties) ||
    !jsonEqual(own(profile, "accessProviders", ways ?? [], wanted.accessProviders), wanted.accessProviders) ||
    wanted.conditions.some((condition) => !isShown(condition, conditions))
  );
}

/** Returns the items by name, without those of other managers. */
function own<Item extends { readonly name: string }>(
  profile: Stored<ClusterProfile>,
  list: "properties" | "accessProviders",
  shown: readonly Item[],
  wanted: readonly Item[],
): Item[] {
  return shown
    .filter(({ name }) => wanted.some((item) => item.name === name) || isManaged(profile, list, name))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function isManaged({ metadata }: Stored<ClusterProfile>, list: string, name: string): boolean {
  return (metadata.managedFields ?? []).some(({ manager, subresource, fieldsV1 }) => {
    if (manager !== STATUS_MANAGER || subresource !== "status") return false;
    const fields = valueAt(fieldsV1, ["f:status", `f:${list}`]);
    if (!isJsonObject(fields)) return false;
    // The list is atomic in early releases of the definition: then its path has no items.
    return Object.keys(fields).length === 0 || `k:${JSON.stringify({ name })}` in fields;
  });
}

/** Returns the status with the times of its conditions. `wall` is epoch ms. */
export function withTimes(
  wanted: WantedStatus,
  shown: ClusterProfileStatus | null | undefined,
  wall: number,
): ClusterProfileStatus {
  const now = timestamp(wall);
  const conditions = wanted.conditions.map((condition) => withTransitionTime(condition, shown?.conditions, now));
  const { version, properties, accessProviders } = wanted;
  return {
    ...defined({ version }),
    ...(properties.length === 0 ? {} : { properties }),
    ...(accessProviders.length === 0 ? {} : { accessProviders }),
    conditions,
  };
}
