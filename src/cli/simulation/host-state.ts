import { WISHES_LABEL, WISHES_VALUE } from "../../api/keys.ts";
import { placementDefaults } from "../../api/resources.ts";
import { WISHING_KINDS } from "../../api/workload-wishes.ts";
import { claimNames } from "../../copies/claims.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { persistentVolumeClaims, pods } from "../../kube/resources.ts";
import { type FindWorkload, WISHING, type WishingWorkload, workloadKey } from "../../scheduling/workload.ts";
import type { ClaimsByNamespace } from "../../simulation/claims.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { objectOf, type WrittenObject } from "../shared/documents.ts";
import { type Hidden, ofViewers } from "../shared/hidden.ts";
import {
  listClusters,
  listNamespaces,
  listServed,
  listVirtualNodes,
  listWhereAllowed,
  OF_PROXIES,
  readable,
} from "../shared/reading.ts";
import type { NamedWorkload } from "./controller-pods.ts";
import { WORKLOAD_RESOURCES, type WorkloadPods } from "./workloads.ts";

/** The host's state, as far as an account may read it. */
export interface SeenHost {
  readonly host: HostState;
  readonly hidden: readonly Hidden[];
}

const OTHER_PODS = ofViewers("the room that pods of other namespaces take");

/** Reads what placement depends on: of all namespaces or, where the account may not, of `own`. Rejects with KubeError. */
export async function readHost(client: ClusterClient, own: readonly string[], signal: AbortSignal): Promise<SeenHost> {
  const [{ host, hidden }, proxies, workloads] = await Promise.all([
    readWithoutProxies(client, own, signal),
    listWhereAllowed(client, pods, own, { labelSelector: OF_PROXIES, signal }),
    readWishing(client, own, signal),
  ]);
  return {
    host: {
      ...host,
      proxies: proxies.found,
      findWorkload: among(workloads),
    },
    hidden: proxies.isAll ? hidden : [OTHER_PODS, ...hidden],
  };
}

/** Reads the workloads whose wishes their pods do not carry, as far as the account may read them. */
async function readWishing(
  host: ClusterClient,
  own: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, WishingWorkload>> {
  const options = {
    labelSelector: `${WISHES_LABEL}=${WISHES_VALUE}`,
    metadataOnly: true,
    dropManagedFields: true,
    signal,
  };
  const read = WISHING_KINDS.map(async (kind) => {
    const { found } = await listWhereAllowed(host, WISHING[kind], own, options);
    return found.map(({ metadata: { namespace = "", name, uid, annotations = {} } }) => {
      return [workloadKey(namespace, { kind, name }), { uid, annotations }] as const;
    });
  });
  return new Map((await Promise.all(read)).flat());
}

/** Finds workloads by `workloadKey` among these first, and then by `others`. */
export function among(workloads: ReadonlyMap<string, WishingWorkload>, others?: FindWorkload): FindWorkload {
  return (namespace, workload) => workloads.get(workloadKey(namespace, workload)) ?? others?.(namespace, workload);
}

/** Reads what the placement of objects without pods depends on. Rejects like `readHost`. */
export async function readWithoutProxies(
  client: ClusterClient,
  own: readonly string[],
  signal: AbortSignal,
): Promise<SeenHost> {
  const [clusters, nodes, { found }, defaults] = await Promise.all([
    listClusters(client, signal),
    listVirtualNodes(client, signal),
    listNamespaces(client, own, signal),
    // An installation of an earlier version has no PlacementDefaults.
    readable(listServed(client, placementDefaults, signal).then((served) => served ?? [])),
  ]);
  return {
    host: { clusters, nodes, proxies: [], namespaces: found, defaults: defaults ?? [] },
    hidden: defaults === undefined ? [ofViewers("PlacementDefaults")] : [],
  };
}

/** Reads the claims of the namespaces in which some of the pods have claims. */
export async function readClaims(
  host: ClusterClient,
  workloads: readonly { readonly namespace: string; readonly pods: Pick<WorkloadPods, "claims" | "spec"> }[],
  signal: AbortSignal,
): Promise<ClaimsByNamespace> {
  const claiming = workloads.filter(
    ({ pods: { claims, spec } }) => claims.length > 0 || claimNames({ spec }).length > 0,
  );
  const read = [...new Set(claiming.map(({ namespace }) => namespace))].map(
    async (namespace) => [namespace, await listAll(host, persistentVolumeClaims, { namespace, signal })] as const,
  );
  return new Map(await Promise.all(read));
}

export async function readWorkloadObject(
  host: ClusterClient,
  { kind, namespace, name }: NamedWorkload,
  signal: AbortSignal,
): Promise<WrittenObject | undefined> {
  const stored = await host.find(WORKLOAD_RESOURCES[kind], { namespace, name }, { signal });
  return stored === undefined ? undefined : objectOf(stored, `${kind} ${namespace}/${name}`);
}
