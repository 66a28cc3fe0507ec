import {
  type KubeNode,
  type Namespace,
  type ObjectKey,
  objectKey,
  type Pod,
  type Stored,
} from "../../../../src/api/kubernetes.ts";
import { Observer } from "../../../../src/controllers/delegation/observe.ts";
import { PlaceTracker } from "../../../../src/controllers/delegation/place-tracker.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { cluster, delegates as delegatesOf, member, withState } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { placementOver } from "../../scheduling/placement-over.ts";
import { registryOf } from "../fleet.ts";

export const waiting: Stored<Pod> = proxyPod({});
export const key: ObjectKey = objectKey(waiting.metadata);
const SIZE = { cpu: 64, pods: 100 };

/** What is observed of a pod name, and noted by it. */
export interface Observing {
  readonly observer: Observer;
  readonly tracker: PlaceTracker;
  /** Names that the registry forgot. */
  readonly forgotten: readonly ObjectKey[];
  /** Members in which a delegate was found. */
  readonly found: readonly string[];
  readonly names: () => string[] | undefined;
}

/** Returns the stores of a host with this proxy, and of members with these delegates; `lost` has no connection. */
export function observing({
  proxy,
  delegates = {},
  holders = [],
  uncertain,
  synced = true,
  refused = false,
}: {
  proxy?: Stored<Pod>;
  delegates?: Readonly<Record<string, Stored<Pod>>>;
  holders?: readonly string[];
  uncertain?: string;
  synced?: boolean;
  /** The member of `lost` joined as west. */
  refused?: boolean;
}): Observing {
  const forgotten: ObjectKey[] = [];
  const found: string[] = [];
  const members = ["west", "east", "north"].map((name) =>
    member(name, fakeClient({}), {
      nodesRead: true,
      probed: { reachable: true },
      delegates: delegatesOf({ get: () => delegates[name] }),
      candidate: () => candidateNamed(name, { allocatable: SIZE, largestNode: SIZE, used: { cpu: 60, pods: 3 } }),
    }),
  );
  const held = new Set([...holders, ...Object.keys(delegates)]);
  const homeApi = () => ({ state: "unknown", message: "" }) as const;
  const { placementState } = placementOver([], { namespaces: new Store<Namespace>(), homeApi });
  withState(placementState.memories, {
    of: () => ({ fresh: true, attempts: {}, ...(uncertain === undefined ? {} : { uncertain }) }),
    noteFound: (_uid, name) => void found.push(name),
  });
  const options = {
    registry: registryOf(members, {
      holders: () => members.filter(({ name }) => held.has(name)),
      unconnected: () => [cluster("lost")],
      joinedAs: (name) => (refused && name === "lost" ? "west" : undefined),
      forget: (gone) => void forgotten.push(gone),
    }),
    preparer: { needs: () => undefined },
    virtualNodes: new Store<KubeNode>(),
    placementState,
    proxies: { synced, get: () => proxy },
    waiting: { since: () => undefined },
    clock: { now: () => 0, wall: () => 0 },
  };
  const observer = new Observer(options);
  const tracker = new PlaceTracker(options);
  return { observer, tracker, forgotten, found, names: () => observer.observe(key)?.members.map(({ name }) => name) };
}
