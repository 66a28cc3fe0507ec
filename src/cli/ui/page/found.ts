import type { MemberRow, NamedService, PodRow, WholeRow } from "../model.ts";
import { linkTo } from "./route.ts";
import { type WorkloadRow, wholeLink } from "./workload-rows.ts";

/** Something with a view of its own. */
export interface Found {
  readonly kind: "member" | "namespace" | "node" | "workload" | "Service" | "pod" | "whole object";
  readonly name: string;
  /** Namespace, or member of a node. */
  readonly within: string;
  readonly link: string;
}

export interface Searched {
  readonly members: readonly MemberRow[];
  readonly pods: Iterable<PodRow>;
  readonly workloads: readonly WorkloadRow[];
  readonly services: readonly NamedService[];
  readonly objects: readonly WholeRow[];
}

/** Returns the words of a search, in lower case. */
export function wordsOf(search: string): string[] {
  return search.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Finds all that has every word in its name or place: what has fewest of its kind first, exact names first of each kind. */
export function findAll({ members, pods, workloads, services, objects }: Searched, search: string): Found[] {
  const words = wordsOf(search);
  if (words.length === 0) return [];
  const namespaces = new Set<string>();
  const nodes = new Map<string, { readonly member: string; readonly name: string }>();
  const ofPods: Found[] = [];
  for (const { namespace, name, member, node } of pods) {
    namespaces.add(namespace);
    if (member !== undefined && node !== undefined) nodes.set(`${member}/${node}`, { member, name: node });
    ofPods.push({ kind: "pod", name, within: namespace, link: linkTo(["pods", namespace, name]) });
  }
  for (const { namespace } of workloads) if (namespace !== "") namespaces.add(namespace);
  const all: Found[][] = [
    members.map(({ name }) => ({ kind: "member", name, within: "", link: linkTo(["members", name]) })),
    [...namespaces].map((name) => ({ kind: "namespace", name, within: "", link: linkTo(["namespaces", name]) })),
    [...nodes.values()].map(({ member, name }) => {
      return { kind: "node", name, within: member, link: linkTo(["nodes", member, name]) };
    }),
    workloads.map(({ kind, name, namespace, link }) => {
      return { kind: "workload", name: `${kind}/${name}`, within: namespace, link };
    }),
    services.map(({ namespace, name }) => {
      return { kind: "Service", name, within: namespace, link: linkTo(["services", namespace, name]) };
    }),
    objects.map((object) => {
      const { kind, name, namespace = "" } = object;
      return { kind: "whole object", name: `${kind}/${name}`, within: namespace, link: wholeLink(object) };
    }),
    ofPods,
  ];
  const isExact = ({ name }: Found): boolean => words.includes(name.toLowerCase());
  return all.flatMap((some) =>
    some
      .filter(({ kind, name, within }) => {
        const text = `${kind} ${within}/${name}`.toLowerCase();
        return words.every((word) => text.includes(word));
      })
      .sort((a, b) => Number(isExact(b)) - Number(isExact(a)) || (a.name < b.name ? -1 : 1)),
  );
}
