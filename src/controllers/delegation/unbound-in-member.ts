import type { ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import { isGated } from "../../pods/pod-state.ts";
import type { Eligibilities } from "../../scheduling/eligibility.ts";
import type { Memories } from "../../scheduling/memories.ts";
import { type Memory, mayHold } from "../../scheduling/memory.ts";
import { isFor } from "./decision/delegates.ts";
import { unconnectedCandidate } from "./observe.ts";

interface UnboundInOptions {
  readonly registry: Pick<Registry, "cluster" | "joinedAs" | "member" | "members">;
  readonly waiting: Iterable<readonly [ObjectKey, Stored<Pod>]>;
  readonly placementState: {
    readonly memories: Pick<Memories, "of">;
    readonly eligibilities: Pick<Eligibilities, "of">;
  };
}

/** Returns the number of unbound proxies whose delegates are in a Cluster's member, or may be. */
export function unboundIn(name: string, { registry, waiting, placementState }: UnboundInOptions): number {
  const { memories, eligibilities } = placementState;
  const cluster = registry.cluster(name);
  const member = registry.member(name);
  const candidate = member?.candidate() ?? (cluster === undefined ? undefined : unconnectedCandidate(cluster, ""));
  /** An earlier leader or connection may have created a delegate there, and the member has not been read since. */
  const isUnread = (key: ObjectKey, proxy: Stored<Pod>, memory: Memory): boolean =>
    candidate !== undefined &&
    // A member that has never answered has no delegates.
    cluster?.status?.version !== undefined &&
    registry.joinedAs(name) === undefined &&
    member?.read !== true &&
    !hasDelegateElsewhere(key, proxy, name, registry) &&
    mayHold(memory, name) &&
    !isGated(proxy) &&
    eligibilities.of(proxy).never?.(candidate) === undefined;
  let count = 0;
  for (const [key, proxy] of waiting) {
    const memory = memories.of(proxy.metadata.uid);
    const delegate = member?.delegates.get(key);
    if (isFor(delegate, proxy) || memory.uncertain === name || isUnread(key, proxy, memory)) count += 1;
  }
  return count;
}

function hasDelegateElsewhere(
  key: ObjectKey,
  proxy: Stored<Pod>,
  cluster: string,
  registry: Pick<Registry, "members">,
): boolean {
  return registry
    .members()
    .some((other) => other.name !== cluster && other.read && isFor(other.delegates.get(key), proxy));
}
