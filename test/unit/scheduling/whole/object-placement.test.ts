import { describe, expect, test } from "vitest";
import { parsePlacement } from "../../../../src/api/annotations.ts";
import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { Candidate } from "../../../../src/placement/candidate.ts";
import { objectToPlace, placementOf } from "../../../../src/scheduling/whole/object-placement.ts";

const PREFERENCES = "legation.dev/scheduling-preferences";
const WIDGETS: DelegatedType = {
  metadata: { name: "widgets.example.com" },
  spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets", replicas: "/spec/replicas" },
};

function candidate(name: string, more: Partial<Candidate> = {}): Candidate {
  return { name, labels: {}, allocatable: {}, largestNode: {}, used: {}, ...more };
}

/** Places an object with replicas in an opted-in namespace. */
function placed(
  replicas: number,
  annotations: Record<string, string>,
  candidates: readonly Candidate[],
  type = WIDGETS,
): ReturnType<typeof placementOf>["members"] {
  const metadata = { name: "one", namespace: "team", uid: "u1", resourceVersion: "1", annotations };
  const object: Stored<AnyObject> = { metadata, spec: { replicas } };
  const rules = { parse: () => parsePlacement(annotations), namespaceLabels: () => ({}) };
  return placementOf(objectToPlace(object, { type, rules, candidates })).members;
}

function sharesOf(...given: Parameters<typeof placed>): (number | undefined)[] {
  return placed(...given).map(({ share }) => share);
}

function divided(clusters: object): Record<string, string> {
  return { [PREFERENCES]: JSON.stringify({ clusters }) };
}

const BOTH = [candidate("west"), candidate("east")];

describe("the shares of an object", () => {
  test("are those of its preferences", () => {
    expect(sharesOf(8, divided({ west: { weight: 3 }, "*": { weight: 1 } }), BOTH)).toEqual([6, 2]);
  });

  test("make up the whole, whatever the number", () => {
    const annotations = divided({ west: { weight: 3, minReplicas: 1 }, east: { weight: 2 }, south: { weight: 2 } });
    const three = [...BOTH, candidate("south")];
    for (let replicas = 0; replicas <= 50; replicas += 1) {
      const shares = sharesOf(replicas, annotations, three);
      expect(shares.reduce<number>((sum, share) => sum + (share ?? 0), 0)).toBe(replicas);
    }
  });

  test("stay while a member does not answer, and are divided anew when its Cluster is removed", () => {
    const annotations = divided({ "*": { weight: 1 } });
    const silent = { reason: "ClusterNotReady", message: "it does not answer" } as const;
    expect(sharesOf(4, annotations, [candidate("west", { closed: silent }), candidate("east")])).toEqual([2, 2]);
    const removed = { reason: "ClusterBeingRemoved", message: "it is being removed" } as const;
    expect(sharesOf(4, annotations, [candidate("west", { closed: removed }), candidate("east")])).toEqual([0, 4]);
  });

  test("are none without preferences, or where the type has no replicas", () => {
    expect(sharesOf(4, {}, BOTH)).toEqual([undefined, undefined]);
    const type = { ...WIDGETS, spec: { ...WIDGETS.spec, replicas: "/spec/size" } };
    expect(sharesOf(4, divided({ "*": { weight: 1 } }), BOTH, type)).toEqual([undefined, undefined]);
  });

  test("leave a member out that gets nothing", () => {
    expect(placed(4, divided({ west: { weight: 1 } }), BOTH).map(({ excluded }) => excluded)).toEqual([
      undefined,
      `${PREFERENCES} gives it none of the replicas`,
    ]);
  });
});
