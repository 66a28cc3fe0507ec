import type { Namespace, Pod } from "../../../../../src/api/kubernetes.ts";
import type { PlacementDefaults } from "../../../../../src/api/placement-defaults.ts";
import { Load } from "../../../../../src/clusters/load.ts";
import { PLACING_INDEXES, Placing } from "../../../../../src/controllers/delegation/placing/placing.ts";
import type { Candidate } from "../../../../../src/placement/candidate.ts";
import type { HomeApi } from "../../../../../src/pods/home-api.ts";
import { Store } from "../../../../../src/runtime/store.ts";

/** Placing over members that are sound and, but for some, have been read. */
export function placingOver(
  candidates: readonly Candidate[],
  {
    namespaces,
    homeApi,
    unread = [],
  }: {
    readonly namespaces: Store<Namespace>;
    readonly homeApi: (member: string) => HomeApi;
    readonly unread?: readonly string[];
  },
): { readonly proxies: Store<Pod>; readonly placing: Placing } {
  const members = candidates.map((candidate) => ({
    name: candidate.name,
    read: !unread.includes(candidate.name),
    settling: false,
    roomVersion: "",
    load: new Load(),
    candidate: () => candidate,
  }));
  const proxies = new Store<Pod>(PLACING_INDEXES);
  const placing = new Placing({
    registry: {
      members: () => members,
      member: (name) => members.find((member) => member.name === name),
      unconnected: () => [],
    },
    namespaces: () => namespaces,
    defaults: () => new Store<PlacementDefaults>(),
    proxies: () => proxies,
    homeApi,
    clock: { now: () => 0 },
  });
  return { proxies, placing };
}
