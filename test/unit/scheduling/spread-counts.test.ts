import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { CLUSTER_SPREAD_ANNOTATION } from "../../../src/api/keys.ts";
import { type Namespace, objectKey, type Pod, type Stored } from "../../../src/api/kubernetes.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { rank } from "../../../src/placement/rank.ts";
import { Store } from "../../../src/runtime/store.ts";
import { NAMESPACE_INDEX } from "../../../src/scheduling/known-pods.ts";
import { proxyPod } from "../../support/builders/pod.ts";
import { placementOver } from "./placement-over.ts";

const APPS = ["web", "api"];
const MEMBERS = ["west", "east"];

function candidate(name: string): Candidate {
  return { name, labels: { region: name }, allocatable: { pods: 1_000 }, largestNode: { pods: 1_000 }, used: {} };
}

function scene() {
  const namespaces = new Store<Namespace>();
  namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1" } });
  const homeApi = () => ({ state: "unknown", message: "" }) as const;
  return placementOver(MEMBERS.map(candidate), { namespaces, homeApi });
}

function proxy(uid: string, app: string, parts: object = {}): Stored<Pod> {
  const spread = [{ topologyKey: "region", labelSelector: { matchLabels: { app } } }];
  const annotations = { [CLUSTER_SPREAD_ANNOTATION]: JSON.stringify(spread), "legation.dev/api": "none" };
  return proxyPod({ uid, name: uid, metadata: { labels: { app }, annotations }, ...parts });
}

const asked = { requests: { pods: 1 }, namespace: "team" };

/** Returns the member whose region has fewer pods of the app; both if equal. */
function preferred(of: ReturnType<typeof scene>, app: string): readonly string[] {
  const looking = proxy("looking", app);
  const rules = of.placementState.eligibilities.of(looking).rules?.() ?? [];
  return rank({ requests: {}, rules, candidates: MEMBERS.map(candidate) }).fitting.toSorted();
}

test("scans a namespace once for all pods that are spread by one selector, wherever they are created", () => {
  const all = scene();
  for (let nth = 0; nth < 100; nth += 1) {
    const stored = proxy(`p-${nth}`, "web");
    all.proxies.set(stored);
    all.placementState.update(stored);
  }
  const listing = vi.spyOn(all.proxies, "byIndex");
  for (let nth = 0; nth < 100; nth += 1) {
    const [best = "none"] = preferred(all, "web");
    all.placementState.reservations.attempt(`p-${nth}`, best, asked, undefined);
  }
  expect(listing.mock.calls.filter(([index]) => index === NAMESPACE_INDEX)).toHaveLength(1);
  expect(preferred(all, "web")).toEqual(["east", "west"]);
});

/** The expected state of a pod: its place, and its last request. */
interface Known {
  app: string;
  is: "waiting" | "overflowing" | "bound" | "over";
  at?: string | undefined;
  asked?: string | undefined;
  reserved?: boolean;
}
type Scene = ReturnType<typeof scene>;
type Step = readonly [uid: string, app: string, does: string, member: string];

const refusalOf = (cluster: string) => ({ cluster, reason: "RefusedByMember", message: "exceeded quota" }) as const;

/** Events of a pod: the required state, the change in the expected state, and the call of the controller. */
const EVENTS: Readonly<
  Record<
    string,
    {
      readonly may: (pod: Known, member: string) => boolean;
      readonly becomes: (pod: Known, member: string) => Partial<Known>;
      readonly told: (of: Scene, uid: string, member: string) => void;
    }
  >
> = {
  "is asked for": {
    may: ({ is }) => is === "waiting" || is === "bound",
    becomes: ({ is }, at) => (is === "bound" ? {} : { at, asked: at, reserved: false }),
    told: ({ placementState }, uid, member) => placementState.reservations.attempt(uid, member, asked, undefined),
  },
  "is reserved room": {
    may: ({ is }) => is === "waiting",
    becomes: (_, at) => ({ at, asked: at, reserved: true }),
    told: ({ placementState }, uid, member) => placementState.reservations.reserve(uid, member, asked),
  },
  "is refused": {
    may: ({ is, at, reserved = false }, member) => is === "waiting" && reserved === (at !== member),
    becomes: ({ at, asked: last }, member) => (last === member ? { at: undefined } : { at }),
    told: ({ placementState }, uid, member) =>
      placementState.retries.refuse(uid, refusalOf(member), { nodesVersion: 0 }),
  },
  "is not made": {
    may: ({ is, at, reserved }, member) => is === "waiting" && at === member && reserved !== true,
    becomes: () => ({ at: undefined }),
    told: ({ placementState }, uid, member) => placementState.reservations.unmade(uid, member),
  },
  "is shown": {
    may: ({ is }) => is === "waiting",
    becomes: ({ at }, member) => ({ at: at ?? member }),
    told: ({ placementState }, uid, member) => placementState.noteDelegate(uid, member),
  },
  "is found": {
    may: ({ is }) => is === "waiting",
    becomes: ({ at, reserved }, member) => ({ at: reserved === true ? at : member }),
    told: ({ placementState }, uid, member) => placementState.memories.noteFound(uid, member, 0),
  },
  "is withdrawn": {
    may: ({ is }) => is === "waiting",
    becomes: () => ({ at: undefined, reserved: false }),
    told: ({ placementState }, uid) => placementState.memories.noteUnplaced(uid),
  },
  "is settled": {
    may: ({ is, at }, member) => is === "waiting" && at === member,
    becomes: () => ({ asked: undefined, reserved: false }),
    told: ({ placementState }, uid, member) => placementState.reservations.noteBound(uid, member, undefined),
  },
};

/** The host's view of a pod after that. */
const SHOWN: Readonly<
  Record<string, (member: string) => { readonly parts: object; readonly becomes: Partial<Known> }>
> = {
  "is bound": (at) => ({ parts: { spec: { nodeName: `legation-${at}` } }, becomes: { is: "bound", at } }),
  "is bound elsewhere": () => ({ parts: { spec: { nodeName: "host-node" } }, becomes: { is: "bound", at: undefined } }),
  ends: () => ({ parts: { status: { phase: "Failed" } }, becomes: { is: "over", at: undefined } }),
};

/** Applies the step to the controller and the expected state, if it is possible. */
function take(of: Scene, books: Map<string, Known>, [uid, app, does, member]: Step): void {
  const { proxies, placementState } = of;
  const pod = books.get(uid);
  const put = (stored: Stored<Pod>): void => {
    proxies.set(stored);
    placementState.update(stored);
  };
  if (pod === undefined) {
    if (does === "overflows") {
      books.set(uid, { app, is: "overflowing", at: member });
      placementState.reserve(proxy(uid, app), member, asked);
    } else if (does === "comes") {
      books.set(uid, { app, is: "waiting" });
      put(proxy(uid, app));
    }
    return;
  }
  const stored = proxies.get(objectKey({ namespace: "team", name: uid }));
  const shown = pod.is === "bound" || pod.is === "over" ? undefined : SHOWN[does]?.(member);
  const event = EVENTS[does];
  if (shown !== undefined) {
    Object.assign(pod, shown.becomes);
    put(proxy(uid, pod.app, shown.parts));
  } else if (event?.may(pod, member) === true) {
    Object.assign(pod, event.becomes(pod, member));
    event.told(of, uid, member);
  } else if (does === "is labelled" && stored !== undefined) {
    pod.app = app;
    put({ ...stored, metadata: { ...stored.metadata, labels: { app } } });
  } else if (does === "goes" && stored !== undefined) {
    books.delete(uid);
    proxies.delete(objectKey(stored.metadata));
    placementState.remove(stored);
  } else if (does === "is given up" && pod.is === "overflowing") {
    books.delete(uid);
    placementState.giveUp(uid, pod.at ?? "");
  }
}

function countsIn({ placementState }: Scene, app: string): object {
  const counts = placementState.spread.of("team", { matchLabels: { app } }, "looking");
  return Object.fromEntries([...counts].toSorted());
}

test("counts pods where they are, or are about to be, in any order of events and however long", () => {
  const others = ["comes", "overflows", "is labelled", "goes", "is given up"];
  const step = fc.tuple(
    fc.constantFrom("a", "b", "c"),
    fc.constantFrom(...APPS),
    fc.constantFrom(...others, ...Object.keys(EVENTS), ...Object.keys(SHOWN)),
    fc.constantFrom(...MEMBERS),
  );
  const steps = fc.array(step, { minLength: 30, maxLength: 80 });
  fc.assert(
    fc.property(steps, fc.nat({ max: 20 }), (all, from) => {
      const of = scene();
      const books = new Map<string, Known>();
      for (const [nth, one] of all.entries()) {
        take(of, books, one);
        if (nth < from) continue;
        for (const app of APPS) {
          const counts: Record<string, number> = {};
          for (const pod of books.values()) {
            if (pod.app === app && pod.at !== undefined) counts[pod.at] = (counts[pod.at] ?? 0) + 1;
          }
          expect(countsIn(of, app)).toEqual(counts);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("counts correctly for more selectors than are kept", () => {
  const all = scene();
  const apps = Array.from({ length: 20 }, (_, nth) => `app-${nth}`);
  for (const app of apps) {
    const stored = proxy(app, app, { spec: { containers: [], nodeName: "legation-west" } });
    all.proxies.set(stored);
    all.placementState.update(stored);
  }
  for (let round = 0; round < 2; round += 1) for (const app of apps) expect(preferred(all, app)).toEqual(["east"]);
});

test("counts a pod on a node of the host nowhere", () => {
  const all = scene();
  preferred(all, "web");
  for (const parts of [{}, { spec: { containers: [], nodeName: "host-node" } }]) {
    all.proxies.set(proxy("a", "web", parts));
    all.placementState.update(proxy("a", "web", parts));
    all.placementState.reservations.attempt("a", "west", asked, undefined);
  }
  expect(preferred(all, "web")).toEqual(["east", "west"]);
});

describe("a pod without a node", () => {
  const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
  type PlacementState = ReturnType<typeof scene>["placementState"];
  test.each<[string, (placementState: PlacementState) => void, readonly string[]]>([
    [
      "still counts where it is bound to, until the host shows it",
      ({ reservations }) => {
        reservations.attempt("a", "west", asked, undefined);
        reservations.noteBound("a", "west", undefined);
      },
      ["east"],
    ],
    ["counts where an earlier leader had it created", ({ memories }) => memories.noteFound("a", "west", 0), ["east"]],
    [
      "counts where a member shows it before it is observed",
      (placementState) => placementState.noteDelegate("a", "west"),
      ["east"],
    ],
    [
      "no longer counts where it is refused",
      ({ reservations, retries }) => {
        reservations.attempt("a", "west", asked, undefined);
        retries.refuse("a", refusal, { nodesVersion: 0 });
      },
      ["east", "west"],
    ],
    [
      "no longer counts where it turns out not to exist",
      ({ reservations }) => {
        reservations.attempt("a", "west", asked, undefined);
        reservations.unmade("a", "west");
      },
      ["east", "west"],
    ],
    [
      "counts where room is reserved for it, and not where it is withdrawn",
      ({ reservations, retries }) => {
        reservations.attempt("a", "west", asked, undefined);
        reservations.reserve("a", "east", asked);
        retries.refuse("a", refusal, { nodesVersion: 0 });
      },
      ["west"],
    ],
  ])("%s", (_, happens, open) => {
    const all = scene();
    preferred(all, "web");
    const stored = proxy("a", "web");
    all.proxies.set(stored);
    all.placementState.update(stored);
    happens(all.placementState);
    expect(preferred(all, "web")).toEqual(open);
  });
});
