import { formatAmounts } from "../../api/quantity.ts";
import { jsonEqual } from "../../pods/equal.ts";
import type { Observed } from "./model.ts";

/**
 * The Cluster's status when it must change; undefined when it is true as it stands. `urgent` when more than counters
 * differ, so that a member's loss is told at once.
 */
export function clusterStatus(
  { cluster, facts }: Observed,
  now: number,
): { readonly body: object; readonly urgent: boolean } | undefined {
  if (cluster === undefined) return undefined;
  const at = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
  const current = cluster.status ?? {};
  const ready = facts.reachable
    ? { status: "True" as const, reason: "ProbeSucceeded", message: "its API server answers" }
    : { status: "False" as const, reason: "ProbeFailed", message: facts.message ?? "its API server does not answer" };
  const before = current.conditions?.find(({ type }) => type === "Ready");
  const counters = {
    nodes: facts.nodes,
    pods: facts.proxies,
    capacity: formatAmounts(facts.capacity),
    allocatable: formatAmounts(facts.allocatable),
  };
  const urgent =
    before?.status !== ready.status ||
    (facts.version !== undefined && current.version !== facts.version) ||
    current.observedGeneration !== cluster.metadata.generation;
  const changed =
    urgent ||
    before.message !== ready.message ||
    Object.entries(counters).some(([field, value]) => !jsonEqual(current[field as keyof typeof current], value));
  if (!changed) return undefined;
  const since = before?.status === ready.status ? before.lastTransitionTime : at;
  return {
    urgent,
    body: {
      ...counters,
      observedGeneration: cluster.metadata.generation,
      ...(facts.version === undefined ? {} : { version: facts.version }),
      conditions: [
        { type: "Ready", ...ready, lastTransitionTime: since, observedGeneration: cluster.metadata.generation },
      ],
    },
  };
}
