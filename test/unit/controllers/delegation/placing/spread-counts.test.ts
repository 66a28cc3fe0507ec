import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { CLUSTER_SPREAD_ANNOTATION } from "../../../../../src/api/keys.ts";
import { type Namespace, objectKey, type Pod, type Stored } from "../../../../../src/api/kubernetes.ts";
import { NAMESPACE_INDEX } from "../../../../../src/controllers/delegation/placing/placement-rules.ts";
import type { Candidate } from "../../../../../src/placement/candidate.ts";
import { rank } from "../../../../../src/placement/rank.ts";
import { Store } from "../../../../../src/runtime/store.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { placingOver } from "./placing-over.ts";

const APPS = ["web", "api"];
const MEMBERS = ["west", "east"];

function candidate(name: string): Candidate {
  return { name, labels: { region: name }, allocatable: { pods: 1_000 }, largestNode: { pods: 1_000 }, used: {} };
}

function scene() {
  const namespaces = new Store<Namespace>();
  namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1" } });
  const homeApi = () => ({ state: "unknown", message: "" }) as const;
  return placingOver(MEMBERS.map(candidate), { namespaces, homeApi });
}

function proxy(uid: string, app: string, parts: object = {}): Stored<Pod> {
  const spread = [{ topologyKey: "region", labelSelector: { matchLabels: { app } } }];
  const annotations = { [CLUSTER_SPREAD_ANNOTATION]: JSON.stringify(spread), "legation.dev/api": "none" };
  return proxyPod({ uid, name: uid, metadata: { labels: { app }, annotations }, ...parts });
}

const asked = { requests: { pods: 1 }, namespace: "team" };

/** The member whose region has fewer pods of the app; both when none is ahead. */
function preferred(of: ReturnType<typeof scene>, app: string): readonly string[] {
  const looking = proxy("looking", app);
  const rules = of.placing.view.of(looking).rules?.() ?? [];
  return rank({ requests: {}, rules, candidates: MEMBERS.map(candidate) }).fitting.toSorted();
}

test("a namespace is gone through once for all pods that are spread by one selector, wherever they come to be", () => {
  const all = scene();
  for (let nth = 0; nth < 100; nth += 1) {
    const stored = proxy(`p-${nth}`, "web");
    all.proxies.set(stored);
    all.placing.update(stored);
  }
  const listing = vi.spyOn(all.proxies, "byIndex");
  for (let nth = 0; nth < 100; nth += 1) {
    const [best = "none"] = preferred(all, "web");
    all.placing.reservations.attempt(`p-${nth}`, best, asked, undefined);
  }
  expect(listing.mock.calls.filter(([index]) => index === NAMESPACE_INDEX)).toHaveLength(1);
  expect(preferred(all, "web")).toEqual(["east", "west"]);
});

type Step = readonly [uid: string, app: string, does: string, member: string];

/** What the host and the controller do with the pod. */
function take({ proxies, placing }: ReturnType<typeof scene>, [uid, app, does, member]: Step): void {
  const known = proxies.get(objectKey({ namespace: "team", name: uid }));
  const put = (stored: Stored<Pod>): void => {
    proxies.set(stored);
    placing.update(stored);
  };
  if (does === "come") put(proxy(uid, app));
  else if (does === "be bound") put(proxy(uid, app, { spec: { containers: [], nodeName: `legation-${member}` } }));
  else if (does === "end") put(proxy(uid, app, { status: { phase: "Succeeded" } }));
  else if (does === "overflow" && known === undefined) placing.overflow(proxy(uid, app), member, asked);
  else if (does === "give up") placing.giveUp(uid, member);
  else if (does === "promise" && known !== undefined) placing.reservations.promise(uid, member, asked);
  else if (does === "attempt" && known !== undefined) placing.reservations.attempt(uid, member, asked, known);
  else if (does === "settle" && known !== undefined) placing.reservations.settle(uid, member, known);
  else if (does === "go" && known !== undefined) {
    proxies.delete(objectKey(known.metadata));
    placing.remove(known);
  }
}

test("counts are kept as they would be counted anew, whatever happens to pods", () => {
  const whats = ["come", "be bound", "end", "overflow", "give up", "promise", "attempt", "settle", "go"];
  const step = fc.tuple(
    fc.constantFrom("a", "b", "c", "d"),
    fc.constantFrom(...APPS),
    fc.constantFrom(...whats),
    fc.constantFrom(...MEMBERS),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const [kept, anew] = [scene(), scene()];
      for (const app of APPS) preferred(kept, app);
      for (const one of steps) {
        take(kept, one);
        take(anew, one);
      }
      for (const app of APPS) expect(preferred(kept, app)).toEqual(preferred(anew, app));
    }),
  );
});

test("of more selectors than are kept, each is counted right", () => {
  const all = scene();
  const apps = Array.from({ length: 20 }, (_, nth) => `app-${nth}`);
  for (const app of apps) {
    const stored = proxy(app, app, { spec: { containers: [], nodeName: "legation-west" } });
    all.proxies.set(stored);
    all.placing.update(stored);
  }
  for (let round = 0; round < 2; round += 1) for (const app of apps) expect(preferred(all, app)).toEqual(["east"]);
});

describe("a pod without a node", () => {
  const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
  type Placing = ReturnType<typeof scene>["placing"];
  test.each<[string, (placing: Placing) => void, readonly string[]]>([
    [
      "still counts where it is bound to, until the host shows it",
      ({ reservations }) => {
        reservations.attempt("a", "west", asked, undefined);
        reservations.settle("a", "west", undefined);
      },
      ["east"],
    ],
    ["counts where an earlier leader had it made", ({ memories }) => memories.noteFound("a", "west", 0), ["east"]],
    ["counts where a member shows it before it is looked at", (placing) => placing.held("a", "west"), ["east"]],
    [
      "counts no more where it is refused",
      ({ reservations }) => {
        reservations.attempt("a", "west", asked, undefined);
        reservations.refuse("a", refusal, 0, undefined);
      },
      ["east", "west"],
    ],
    [
      "counts no more where it turns out not to have been made",
      ({ reservations }) => {
        reservations.attempt("a", "west", asked, undefined);
        reservations.unmade("a", "west");
      },
      ["east", "west"],
    ],
    [
      "counts where room is promised to it, and not where it is withdrawn",
      ({ reservations }) => {
        reservations.attempt("a", "west", asked, undefined);
        reservations.promise("a", "east", asked);
        reservations.refuse("a", refusal, 0, undefined);
      },
      ["west"],
    ],
  ])("%s", (_, happens, open) => {
    const all = scene();
    preferred(all, "web");
    const stored = proxy("a", "web");
    all.proxies.set(stored);
    all.placing.update(stored);
    happens(all.placing);
    expect(preferred(all, "web")).toEqual(open);
  });
});
