import type { Pod, Stored } from "../../api/kubernetes.ts";

type Labels = Readonly<Record<string, string>>;

interface Placement {
  readonly member: string;
  readonly namespace: string;
  readonly labels: Labels;
}

/** Which pods have been given to which member, or are about to be, by namespace: what a proxy says counts, no delegate. */
export class Placements {
  readonly #placements = new Map<string, Placement>();
  /** Labels of the pods, by uid, of one namespace in one member. */
  readonly #groups = new Map<string, Map<string, Labels>>();

  /** The pod is in the member, or on its way there. False when that was known, with these labels. */
  place({ metadata }: Stored<Pod>, member: string): boolean {
    const { uid, namespace = "", labels = {} } = metadata;
    const before = this.#placements.get(uid);
    if (before?.member === member && sameLabels(before.labels, labels)) return false;
    if (before !== undefined && before.member !== member) this.forget(uid);
    this.#placements.set(uid, { member, namespace, labels });
    const group = this.#groups.get(groupOf(member, namespace)) ?? new Map<string, Labels>();
    this.#groups.set(groupOf(member, namespace), group.set(uid, labels));
    return true;
  }

  /** The pod has ended or gone. Where it was, when it was the last of its namespace there. */
  forget(uid: string): Omit<Placement, "labels"> | undefined {
    const placement = this.#placements.get(uid);
    if (placement === undefined) return undefined;
    this.#placements.delete(uid);
    const key = groupOf(placement.member, placement.namespace);
    const group = this.#groups.get(key);
    group?.delete(uid);
    if (group !== undefined && group.size > 0) return undefined;
    this.#groups.delete(key);
    return placement;
  }

  /** The member that the pod was given to. */
  memberOf(uid: string): string | undefined {
    return this.#placements.get(uid)?.member;
  }

  /** Whether the member has pods of the namespace. */
  any(member: string, namespace: string): boolean {
    return this.#groups.has(groupOf(member, namespace));
  }

  /** The namespaces of which the member has pods. */
  namespacesIn(member: string): string[] {
    const prefix = groupOf(member, "");
    return [...this.#groups.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  /** The labels of the member's pods of the namespace. */
  labelsIn(member: string, namespace: string): Iterable<Labels> {
    return this.#groups.get(groupOf(member, namespace))?.values() ?? [];
  }
}

function groupOf(member: string, namespace: string): string {
  return `${member}/${namespace}`;
}

function sameLabels(a: Labels, b: Labels): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
