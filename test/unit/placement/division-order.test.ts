import fc from "fast-check";
import { expect, test } from "vitest";
import { divide, divisionShares } from "../../../src/placement/division.ts";
import { DivisionOrder } from "../../../src/placement/division-order.ts";

const CLUSTERS = ["west", "east", "south"];
const KEY = "team/web";
const own = fc.record({ weight: fc.nat(4), minReplicas: fc.nat(3) });
const preferences = fc.record({ west: own, east: own, south: own }).map((clusters) => ({ rebalance: true, clusters }));

test("gives a cluster as many of the first replicas as the division of so many, whatever was asked before", () => {
  fc.assert(
    fc.property(preferences, fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }), (wanted, totals) => {
      const order = new DivisionOrder(divisionShares(wanted, CLUSTERS, { key: KEY }));
      for (const total of totals) {
        const { replicas } = divide({ total, preferences: wanted, clusters: CLUSTERS, key: KEY });
        for (const cluster of CLUSTERS) expect(order.share(cluster, total)).toBe(replicas[cluster] ?? 0);
      }
    }),
  );
});

test("names the position at which a cluster gets its nth replica, if that is among the first ones", () => {
  fc.assert(
    fc.property(
      preferences,
      fc.constantFrom(...CLUSTERS),
      fc.integer({ min: 1, max: 20 }),
      (wanted, cluster, within) => {
        const order = new DivisionOrder(divisionShares(wanted, CLUSTERS, { key: KEY }));
        const share = order.share(cluster, within);
        for (let nth = 1; nth <= share; nth += 1) {
          const position = order.position(cluster, nth, within);
          expect(position).toBeLessThanOrEqual(within);
          expect([order.share(cluster, (position ?? 0) - 1), order.share(cluster, position ?? 0)]).toEqual([
            nth - 1,
            nth,
          ]);
        }
        expect(order.position(cluster, share + 1, within)).toBeUndefined();
      },
    ),
  );
});
