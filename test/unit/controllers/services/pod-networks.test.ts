import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { overlapsIn, type PodNetwork } from "../../../../src/controllers/services/pod-networks.ts";

function clusters(cidrs: Readonly<Record<string, readonly string[]>>): PodNetwork[] {
  return Object.entries(cidrs).map(([name, each]) => ({ name, cidrs: each }));
}

describe("pod networks", () => {
  test.each<[string, string, string]>([
    ["the same range", "10.244.0.0/16", "10.244.0.0/16"],
    ["a node's range within a cluster's", "10.244.0.0/16", "10.244.7.0/24"],
    ["a cluster's range around a node's", "10.244.7.0/24", "10.244.0.0/16"],
    ["IPv6 ranges, however they are written", "fd00:1::/48", "fd00:0001:0:5::/64"],
    ["a CIDR that does not begin its range", "10.244.7.9/24", "10.244.7.0/28"],
  ])("overlap with %s", (_, first, second) => {
    const found = overlapsIn(clusters({ west: [first], east: ["192.0.2.0/24", second] }));
    expect([...found]).toEqual([["east", { cidr: second, other: "west", otherCidr: first }]]);
  });

  test.each<[string, string, string]>([
    ["neighbours", "10.244.0.0/24", "10.244.1.0/24"],
    ["of two families", "10.244.0.0/16", "fd00::/16"],
    ["with a text that is no CIDR", "10.244.0.0/16", "10.244.0.0"],
    ["with a prefix that no address has", "10.244.0.0/16", "10.244.0.0/33"],
    ["with a mapped address", "10.244.0.0/16", "::ffff:10.244.0.0/112"],
  ])("do not overlap: %s", (_, first, second) => {
    expect(overlapsIn(clusters({ west: [first], east: [second] })).size).toBe(0);
  });

  test("of one cluster's own nodes may overlap", () => {
    expect(overlapsIn(clusters({ west: ["10.244.0.0/16", "10.244.1.0/24"] })).size).toBe(0);
  });

  test("leave out the later clusters alone, and none that overlaps only with one that is left out", () => {
    const all = { west: ["10.1.0.0/16"], east: ["10.1.0.0/24", "10.2.0.0/24"], north: ["10.2.0.0/16"] };
    expect([...overlapsIn(clusters(all)).keys()]).toEqual(["east"]);
  });

  test("never keep two clusters with an address in common", () => {
    const cidr = fc.tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 4, max: 8 }));
    const addresses = ([base, prefix]: readonly [number, number]): number[] => {
      const size = 2 ** (8 - prefix);
      return Array.from({ length: size }, (_, index) => Math.floor((base * 16) / size) * size + index);
    };
    fc.assert(
      fc.property(fc.array(fc.array(cidr, { maxLength: 3 }), { maxLength: 6 }), (all) => {
        const named = all.map((each, index) => ({
          name: `c${index}`,
          cidrs: each.map(([base, prefix]) => `10.0.0.${base * 16}/${prefix + 24}`),
        }));
        const out = overlapsIn(named);
        const kept = all.filter((_, index) => !out.has(`c${index}`)).map((each) => new Set(each.flatMap(addresses)));
        const total = kept.reduce((sum, { size }) => sum + size, 0);
        expect(new Set(kept.flatMap((each) => [...each])).size).toBe(total);
        for (const { other } of out.values()) expect(out.has(other)).toBe(false);
      }),
    );
  });

  test("of a thousand clusters are compared at once", () => {
    const many = Array.from({ length: 1000 }, (_, cluster) => ({
      name: `c${cluster}`,
      cidrs: Array.from({ length: 20 }, (_, node) => `fd00:${cluster.toString(16)}:${node.toString(16)}::/48`),
    }));
    expect(overlapsIn(many).size).toBe(0);
  });
});
