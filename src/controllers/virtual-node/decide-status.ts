import type { ClusterStatus } from "../../api/cluster.ts";
import { virtualNodeName } from "../../api/keys.ts";
import { formatAmounts } from "../../api/quantity.ts";
import { timestamp } from "../../api/timestamp.ts";
import { jsonEqual } from "../../pods/equal.ts";
import type { Observed } from "./model.ts";

/**
 * The Cluster's status when it must change; undefined when it is true as it stands. `urgent` when more than counters
 * differ, so that a member's loss is told at once.
 */
export function clusterStatus(
  { name, cluster, node, facts, refused }: Observed,
  wall: number,
): { readonly body: object; readonly urgent: boolean } | undefined {
  if (cluster === undefined) return undefined;
  const at = timestamp(wall);
  const current = cluster.status ?? {};
  const answers = "its API server answers";
  const trouble = refused === undefined ? "" : `, but Node ${virtualNodeName(name)} is not as it should be: ${refused}`;
  // Without it no pod can be bound there.
  const lacksNode = node === undefined && refused !== undefined;
  const ready = facts.reachable
    ? lacksNode
      ? { status: "False" as const, reason: "NodeRefused", message: `Node ${virtualNodeName(name)}: ${refused}` }
      : { status: "True" as const, reason: "ProbeSucceeded", message: `${answers}${trouble}` }
    : {
        status: "False" as const,
        reason: facts.mistaken ? "AnotherCluster" : "ProbeFailed",
        message: facts.message ?? "its API server does not answer",
      };
  const before = current.conditions?.find(({ type }) => type === "Ready");
  const { largestNode, nodeKinds, foreign, held = 0 } = facts;
  const counters: Partial<ClusterStatus> = {
    // What an earlier leader counted stands until this one has.
    ...(facts.proxies === undefined ? {} : { pods: facts.proxies }),
    ...(facts.nodesRead || current.nodes === undefined
      ? {
          nodes: facts.nodes,
          capacity: formatAmounts(facts.capacity),
          allocatable: formatAmounts(facts.allocatable),
        }
      : {}),
    // What was said of nodes that are of too many kinds by now is taken back; what a lost member said still stands.
    ...(largestNode === undefined
      ? {}
      : {
          largestNode: formatAmounts(largestNode),
          nodeKinds: nodeKinds?.kinds ?? [],
          unlistedNodeLabels: nodeKinds?.unlistedLabels ?? [],
        }),
    ...(facts.proxies === undefined || (held === 0 && current.heldDelegates === undefined)
      ? {}
      : { heldDelegates: held }),
    ...(foreign === undefined ? {} : { requestedByOthers: formatAmounts(foreign) }),
  };
  const urgent =
    before?.status !== ready.status ||
    (facts.version !== undefined && current.version !== facts.version) ||
    current.observedGeneration !== cluster.metadata.generation ||
    (held > 0 && (current.heldDelegates ?? 0) === 0);
  const changed =
    urgent ||
    before.message !== ready.message ||
    (facts.server !== undefined && current.server !== facts.server) ||
    Object.entries(counters).some(([field, value]) => !jsonEqual(current[field as keyof typeof current], value));
  if (!changed) return undefined;
  const since = before?.status === ready.status ? before.lastTransitionTime : at;
  return {
    urgent,
    body: {
      ...withRemovals(current, counters),
      observedGeneration: cluster.metadata.generation,
      ...(facts.version === undefined ? {} : { version: facts.version }),
      ...(facts.server === undefined ? {} : { server: facts.server }),
      conditions: [
        { type: "Ready", ...ready, lastTransitionTime: since, observedGeneration: cluster.metadata.generation },
      ],
    },
  };
}

/** Resources that the member no longer has must be taken out of the maps by name: the status is merged. */
function withRemovals(current: ClusterStatus, wanted: Partial<ClusterStatus>): object {
  const entries = Object.entries(wanted).map(([field, value]) => {
    const before: unknown = current[field as keyof ClusterStatus];
    if (!isMap(value) || !isMap(before)) return [field, value];
    const gone = Object.keys(before).filter((name) => !(name in value));
    return [field, { ...value, ...Object.fromEntries(gone.map((name) => [name, null])) }];
  });
  return Object.fromEntries(entries);
}

function isMap(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
