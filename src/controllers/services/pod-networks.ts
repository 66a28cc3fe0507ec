import { isIPv4, isIPv6 } from "node:net";

/** The pod CIDRs of a cluster's nodes. */
export interface PodNetwork {
  readonly name: string;
  readonly cidrs: Iterable<string>;
}

/** A CIDR of one cluster's pods with addresses of another cluster's. */
export interface Overlap {
  readonly cidr: string;
  readonly other: string;
  readonly otherCidr: string;
}

interface Range {
  readonly first: bigint;
  readonly last: bigint;
  readonly cidr: string;
  readonly name: string;
}

const BITS = 128;
// IPv4 addresses as IPv6 has them: `::ffff:0:0/96`.
const MAPPED = { base: 0xffff_0000_0000n, bits: 96 };

/**
 * Returns the clusters whose pods have addresses of an earlier cluster's pods, each with one such CIDR: a client of that address
 * would reach the wrong pod. Text that is no CIDR is left out.
 */
export function overlapsIn(clusters: readonly PodNetwork[]): Map<string, Overlap> {
  const found = pairsIn(clusters.flatMap(({ name, cidrs }) => [...cidrs].flatMap((cidr) => rangeOf(cidr, name) ?? [])));
  const overlaps = new Map<string, Overlap>();
  const kept = new Set<string>();
  for (const { name } of clusters) {
    const overlap = [...(found.get(name)?.values() ?? [])].find(({ other }) => kept.has(other));
    if (overlap === undefined) kept.add(name);
    else overlaps.set(name, overlap);
  }
  return overlaps;
}

/** Returns one overlap for each pair of clusters, by either's name. */
function pairsIn(ranges: readonly Range[]): Map<string, Map<string, Overlap>> {
  const pairs = new Map<string, Map<string, Overlap>>();
  const note = (one: Range, two: Range): void => {
    const others = pairs.get(one.name) ?? new Map<string, Overlap>();
    others.set(two.name, { cidr: one.cidr, other: two.name, otherCidr: two.cidr });
    pairs.set(one.name, others);
  };
  let open: Range[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : Number(a.first > b.first)))) {
    open = open.filter(({ last }) => last >= range.first);
    for (const other of open) {
      if (other.name === range.name) continue;
      note(range, other);
      note(other, range);
    }
    open.push(range);
  }
  return pairs;
}

function rangeOf(cidr: string, name: string): Range | undefined {
  const [address = "", prefix = ""] = cidr.split("/");
  const bits = bitsOf(address);
  const length = Number(prefix) + (isIPv4(address) ? MAPPED.bits : 0);
  if (bits === undefined || !/^\d+$/.test(prefix) || length > BITS) return undefined;
  const rest = (1n << BigInt(BITS - length)) - 1n;
  return { first: bits & ~rest, last: bits | rest, cidr, name };
}

function bitsOf(address: string): bigint | undefined {
  if (isIPv4(address)) {
    return MAPPED.base + BigInt(address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0));
  }
  // Kubernetes writes no address of both notations.
  if (!isIPv6(address) || address.includes(".")) return undefined;
  const [head = "", tail] = address.split("::");
  const [left, right] = [groupsOf(head), groupsOf(tail ?? "")];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n);
}

function groupsOf(text: string): string[] {
  return text === "" ? [] : text.split(":");
}
