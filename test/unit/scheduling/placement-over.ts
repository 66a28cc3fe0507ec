import type { Namespace, Pod } from "../../../src/api/kubernetes.ts";
import type { PlacementDefaults } from "../../../src/api/placement-defaults.ts";
import { DelegateRequests } from "../../../src/clusters/delegate-requests.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import type { HomeApi } from "../../../src/pods/home-api.ts";
import { Store } from "../../../src/runtime/store.ts";
import { PLACEMENT_INDEXES } from "../../../src/scheduling/known-pods.ts";
import { PlacementState } from "../../../src/scheduling/placement-state.ts";
import type { FoundWishes } from "../../../src/scheduling/workload.ts";

/** Returns placement over healthy members, all read except some. */
export function placementOver(
  candidates: readonly Candidate[],
  {
    namespaces,
    homeApi,
    unread = [],
    wishes,
  }: {
    readonly namespaces: Store<Namespace>;
    readonly homeApi: (member: string) => HomeApi;
    readonly unread?: readonly string[];
    /** The wishes of every pod's workload. Absent: there is none. */
    readonly wishes?: FoundWishes | undefined;
  },
): { readonly proxies: Store<Pod>; readonly placementState: PlacementState } {
  const members = candidates.map((candidate) => ({
    name: candidate.name,
    read: !unread.includes(candidate.name),
    syncing: false,
    roomVersion: "",
    requests: new DelegateRequests(),
    candidate: () => candidate,
  }));
  const proxies = new Store<Pod>(PLACEMENT_INDEXES);
  const placementState = new PlacementState({
    classes: undefined,
    registry: {
      members: () => members,
      member: (name) => members.find((member) => member.name === name),
      unconnected: () => [],
    },
    namespaces,
    ...(wishes === undefined ? {} : { wishes: { of: () => wishes } }),
    defaults: new Store<PlacementDefaults>(),
    proxies,
    homeApi,
    clock: { now: () => 0 },
  });
  return { proxies, placementState };
}
