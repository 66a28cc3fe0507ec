import { ACCESS_NAMESPACE } from "../../api/access.ts";
import { HELM, MANAGED_BY, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Deployment, Pod, Stored } from "../../api/kubernetes.ts";
import { RELAY_NAMESPACE } from "../../api/relay.ts";
import { recordedHostName } from "../../clusters/host-name.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { deployments, pods } from "../../kube/resources.ts";
import { conditionOf, isDeleting } from "../../pods/pod-state.ts";
import { imageOf, VERSION_LABEL } from "../shared/deployment-image.ts";
import { findClusters, readable, readVersion } from "../shared/reading.ts";

const COMPONENT_LABEL = "app.kubernetes.io/component";
const LABELS = "app.kubernetes.io/name=legation";

export interface InstalledProcess {
  readonly component: string;
  readonly namespace: string;
  /** Version of the command line or chart that installed it. */
  readonly version?: string | undefined;
  readonly image?: string | undefined;
  readonly replicas: number;
  readonly pods: readonly {
    readonly name: string;
    /** Version that was installed when the pod was made. */
    readonly version?: string | undefined;
    readonly image?: string | undefined;
    readonly ready: boolean;
  }[];
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
  const manager = found?.[0]?.deployment.metadata.labels?.[MANAGED_BY_LABEL];
  const installer = manager === HELM || manager === MANAGED_BY ? manager : undefined;
  const processes = found?.map(processOf);
  const versions = new Set(processes?.map(({ version }) => version));
  const version = versions.size === 1 ? [...versions][0] : undefined;
  return { server, kubernetes, legation: { hostName, installer, version, processes, members } };
}

interface Found {
  readonly deployment: Stored<Deployment>;
  /** The pods of its namespace. */
  readonly running: readonly Stored<Pod>[];
}

/** Reads the Deployments of Legation and their pods. Rejects with KubeError. */
export async function readDeployments(client: ClusterClient, signal: AbortSignal): Promise<readonly Found[]> {
  const found = [SYSTEM_NAMESPACE, ACCESS_NAMESPACE, RELAY_NAMESPACE].map(async (namespace) => {
    const selection = { namespace, labelSelector: LABELS, dropManagedFields: true, signal };
    const [installed, running] = await Promise.all([
      listAll(client, deployments, selection),
      listAll(client, pods, selection),
    ]);
    return installed.map((deployment) => ({ deployment, running }));
  });
  return (await Promise.all(found)).flat();
}

export function processOf({ deployment, running }: Found): InstalledProcess {
  const { labels = {}, name, namespace = "" } = deployment.metadata;
  const component = labels[COMPONENT_LABEL] ?? name;
  return {
    component,
    namespace,
    version: labels[VERSION_LABEL],
    image: imageOf(deployment),
    replicas: deployment.spec?.replicas ?? 1,
    pods: running
      .filter(({ metadata }) => metadata.labels?.[COMPONENT_LABEL] === component)
      .map((pod) => ({
        name: pod.metadata.name,
        version: pod.metadata.labels?.[VERSION_LABEL],
        image: pod.spec?.containers[0]?.image,
        ready: !isDeleting(pod) && conditionOf(pod, "Ready")?.status === "True",
      })),
  };
}
