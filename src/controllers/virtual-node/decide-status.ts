import {
  type ClusterCondition,
  type ClusterStatus,
  NETWORK_CONDITION,
  RELEASED_CONDITION,
  SLOW,
} from "../../api/cluster-status.ts";
import { withTransitionTime } from "../../api/conditions.ts";
import { defined } from "../../api/defined.ts";
import { isJsonObject, type JsonObject, jsonEqual } from "../../api/json.ts";
import { virtualNodeName } from "../../api/keys.ts";
import { timestamp } from "../../api/kubernetes.ts";
import { formatAmounts } from "../../api/quantity.ts";
import { countedAre } from "../../api/wording.ts";
import type { Observed } from "./model.ts";

/** `urgent`: more than counters differ, such as a member's loss. */
export function clusterStatus(
  observed: Observed,
  wall: number,
): { readonly body: object; readonly urgent: boolean } | undefined {
  const { name, cluster, node, facts, refused } = observed;
  if (cluster === undefined) return undefined;
  const at = timestamp(wall);
  const current = cluster.status ?? {};
  const { slow } = facts;
  const answers = `its API server answers${slow === undefined ? "" : `, but is slow: ${slow}`}`;
  const trouble = refused === undefined ? "" : `, but Node ${virtualNodeName(name)} is not as it should be: ${refused}`;
  // No pod can be bound without the node.
  const lacksNode = node === undefined && refused !== undefined;
  const ready = facts.reachable
    ? lacksNode
      ? { status: "False" as const, reason: "NodeRefused", message: `Node ${virtualNodeName(name)}: ${refused}` }
      : {
          status: "True" as const,
          reason: slow === undefined ? "ProbeSucceeded" : SLOW,
          message: `${answers}${trouble}`,
        }
    : {
        status: "False" as const,
        reason: facts.notMember ?? "ProbeFailed",
        message: facts.message ?? "its API server does not answer",
      };
  const earlier = (wanted: string): ClusterCondition | undefined =>
    current.conditions?.find(({ type }) => type === wanted);
  const before = earlier("Ready");
  const way = connectionOf(observed);
  const problems = problemsOf(observed);
  const { largestNode, nodeKinds, requested, foreign, devices, held = 0 } = facts;
  const counters: Partial<ClusterStatus> = {
    // An earlier leader's counts stay until this one has counted.
    ...defined({
      pods: facts.proxies,
      unfinishedPods: facts.unfinished,
      runningPods: facts.running,
      requested: requested && formatAmounts(requested),
    }),
    ...(facts.nodesRead || current.nodes === undefined
      ? {
          nodes: facts.nodes,
          capacity: formatAmounts(facts.capacity),
          allocatable: formatAmounts(facts.allocatable),
        }
      : {}),
    // Removes kinds that have become too many. Those of a lost member stay.
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
    ...defined({ devices }),
  };
  const urgent =
    before?.status !== ready.status ||
    (facts.version !== undefined && current.version !== facts.version) ||
    current.observedGeneration !== cluster.metadata.generation ||
    problems.some(({ type, message }) => (earlier(type) === undefined) !== (message === undefined)) ||
    (held > 0 && (current.heldDelegates ?? 0) === 0);
  const changed =
    urgent ||
    before.message !== ready.message ||
    problems.some(({ type, message }) => earlier(type)?.message !== message) ||
    (facts.server !== undefined && current.server !== facts.server) ||
    Object.entries({ ...counters, ...way.wanted }).some(
      ([field, value]) => !jsonEqual(current[field as keyof typeof current], value),
    );
  if (!changed) return undefined;
  const condition = (next: Omit<ClusterCondition, "lastTransitionTime">): ClusterCondition => ({
    ...withTransitionTime(next, current.conditions, at),
    ...defined({ observedGeneration: cluster.metadata.generation }),
  });
  return {
    urgent,
    body: {
      ...withRemovals(current, { ...counters, ...way.body }),
      observedGeneration: cluster.metadata.generation,
      ...defined({ version: facts.version, server: facts.server }),
      conditions: [
        condition({ type: "Ready", ...ready }),
        ...problems.flatMap(({ type, reason, message }) =>
          message === undefined ? [] : [condition({ type, status: "False", reason, message })],
        ),
      ],
    },
  };
}

/** Returns how the member is reached. Its agent stays as it last was while none is connected. */
function connectionOf({ cluster, facts }: Observed): {
  readonly wanted: Pick<ClusterStatus, "connection" | "agent">;
  readonly body: object;
} {
  if (cluster?.spec.agent === undefined) {
    const wanted = { connection: "Direct" as const };
    return { wanted, body: cluster?.status?.agent === undefined ? wanted : { ...wanted, agent: null } };
  }
  const wanted = { connection: "Agent" as const, ...defined({ agent: facts.agent }) };
  return { wanted, body: wanted };
}

/** Returns the conditions that a Cluster has only while they are False, each with its message if it is. */
function problemsOf(observed: Observed): { type: string; reason: string; message: string | undefined }[] {
  const { networkProblem } = observed.facts;
  return [
    { type: RELEASED_CONDITION, reason: "PodsRemain", message: remainingPods(observed) },
    { type: NETWORK_CONDITION, reason: "PodNetworksOverlap", message: networkProblem },
  ];
}

function remainingPods({ name, cluster, facts }: Observed): string | undefined {
  if (cluster?.metadata.deletionTimestamp === undefined) return undefined;
  const node = virtualNodeName(name);
  const { proxies = 0, waiting, reachable } = facts;
  const parts: string[] = [];
  if (proxies > 0) parts.push(`${countedAre(proxies)} bound to Node ${node}`);
  if (waiting > 0 && reachable) parts.push(`pods without a node whose delegates there are being withdrawn: ${waiting}`);
  if (waiting > 0 && !reachable) {
    parts.push(
      `pods without a node whose delegates are there, or may be, and may start while it does not answer: ${waiting}; ` +
        `when nothing runs there, \`kubectl taint nodes ${node} node.kubernetes.io/out-of-service=lost:NoExecute\` or ` +
        `\`legation unjoin ${name} --force\` gives them up`,
    );
  }
  return parts.length === 0 ? undefined : parts.join("; ");
}

/** A patch of a status keeps what it does not name: what is gone from its maps is removed by name. */
export function withRemovals(current: object, wanted: object): object {
  const shown: JsonObject = { ...current };
  const entries = Object.entries(wanted).map(([field, value]) => {
    const before = shown[field];
    if (!isJsonObject(value) || !isJsonObject(before)) return [field, value];
    const gone = Object.keys(before).filter((name) => !Object.hasOwn(value, name));
    return [field, { ...value, ...Object.fromEntries(gone.map((name) => [name, null])) }];
  });
  return Object.fromEntries(entries);
}
