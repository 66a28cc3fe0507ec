import { ACCESS_NAMESPACE } from "../../api/access.ts";
import { HELM, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Deployment, Pod, Stored } from "../../api/kubernetes.ts";
import { RELAY_NAMESPACE } from "../../api/relay.ts";
import { recordedHostName } from "../../clusters/host-name.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { deployments, pods } from "../../kube/resources.ts";
import { imageOf, VERSION_LABEL } from "../shared/deployment-image.ts";
import { findClusters, readable, readVersion } from "../shared/reading.ts";

const COMPONENT_LABEL = "app.kubernetes.io/component";
const LABELS = "app.kubernetes.io/name=legation";

export interface RunningPod {
  readonly name: string;
  /** Version that was installed when the pod was made. */
  readonly version?: string | undefined;
  readonly image?: string | undefined;
  readonly ready: boolean;
}

export interface InstalledProcess {
  readonly component: string;
  readonly namespace: string;
  /** Version of the command line or chart that installed it. */
  readonly version?: string | undefined;
  readonly image?: string | undefined;
  readonly replicas: number;
  readonly pods: readonly RunningPod[];
}

export interface MemberVersion {
  readonly name: string;
  readonly kubernetes?: string | undefined;
  readonly connection?: "Direct" | "Agent" | undefined;
  readonly agent?: string | undefined;
}

export interface HostVersions {
  readonly server: string;
  readonly kubernetes: string;
  /** Absent if Legation is not installed. */
  readonly legation?: LegationVersions | undefined;
}

export interface LegationVersions {
  readonly hostName?: string | undefined;
  readonly installer?: "legation" | "Helm" | undefined;
  /** Version of the Deployments, if all have one. */
  readonly version?: string | undefined;
  /** Absent if the user may not read Deployments and pods of that cluster. Empty if all processes run outside. */
  readonly processes?: readonly InstalledProcess[] | undefined;
  /** Absent if the user may not read Clusters. */
  readonly members?: readonly MemberVersion[] | undefined;
}

/** Reads the versions on the host, as far as the user may. Rejects with KubeError if the host cannot be reached. */
export async function readHostVersions(
  client: ClusterClient,
  server: string,
  signal: AbortSignal,
): Promise<HostVersions> {
  const kubernetes = (await readVersion(client, { signal })) ?? "unknown";
  const clusters = await readable(findClusters(client, signal).then((found) => found ?? "absent"));
  if (clusters === "absent") return { server, kubernetes };
  const members = clusters?.map(
    ({ metadata: { name }, status }): MemberVersion => ({
      name,
      kubernetes: status?.version,
      connection: status?.connection,
      agent: status?.agent?.version,
    }),
  );
  const hostName = await readable(recordedHostName(client, signal));
  const found = await readable(readDeployments(client, signal));
  const processes = found?.map(({ process }) => process);
  return {
    server,
    kubernetes,
    legation: { hostName, installer: found?.[0]?.installer, version: commonVersion(processes), processes, members },
  };
}

interface Found {
  readonly process: InstalledProcess;
  readonly installer: "legation" | "Helm" | undefined;
}

/** Reads the Deployments of Legation and their pods. Rejects with KubeError. */
export async function readDeployments(client: ClusterClient, signal: AbortSignal): Promise<Found[]> {
  const found = await Promise.all(
    [SYSTEM_NAMESPACE, ACCESS_NAMESPACE, RELAY_NAMESPACE].map(async (namespace) => {
      const selection = { namespace, labelSelector: LABELS, dropManagedFields: true, signal };
      const [installed, running] = await Promise.all([
        listAll(client, deployments, selection),
        listAll(client, pods, selection),
      ]);
      return installed.map((deployment) => processOf(deployment, namespace, running));
    }),
  );
  return found.flat();
}

function processOf(deployment: Stored<Deployment>, namespace: string, running: readonly Stored<Pod>[]): Found {
  const { labels = {}, name } = deployment.metadata;
  const component = labels[COMPONENT_LABEL] ?? name;
  const manager = labels[MANAGED_BY_LABEL];
  const process: InstalledProcess = {
    component,
    namespace,
    version: labels[VERSION_LABEL],
    image: imageOf(deployment),
    replicas: deployment.spec?.replicas ?? 1,
    pods: running.filter(({ metadata }) => metadata.labels?.[COMPONENT_LABEL] === component).map(runningPod),
  };
  return { process, installer: manager === HELM || manager === "legation" ? manager : undefined };
}

function runningPod({ metadata, spec, status }: Stored<Pod>): RunningPod {
  return {
    name: metadata.name,
    version: metadata.labels?.[VERSION_LABEL],
    image: spec?.containers[0]?.image,
    ready: status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false,
  };
}

function commonVersion(processes: readonly InstalledProcess[] | undefined): string | undefined {
  const versions = new Set(processes?.map(({ version }) => version));
  return versions.size === 1 ? [...versions][0] : undefined;
}
