import { jsonEqual } from "../../api/json.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { ReverseIndex } from "../../runtime/reverse-index.ts";

type Labels = Readonly<Record<string, string>>;

export interface PlaceInMember {
  readonly member: string;
  readonly namespace: string;
}

interface PodPlace extends PlaceInMember {
  readonly labels: Labels;
}

/** The change that a pod brings to members. */
export interface Placed {
  /** The pod is the only one of its namespace in its member. */
  readonly isFirst: boolean;
  /** The place that the pod left, if it was the last of its namespace there. */
  readonly left?: PlaceInMember;
}

/** Index of the pods that are in a member, or on their way there, by namespace. Proxies count, delegates do not. */
export class PodsInMembers {
  readonly #placements = new Map<string, PodPlace>();
  /** The pods by member, and by member and namespace. */
  readonly #index = new ReverseIndex<string, string>();

  /** Returns undefined if the place was known, with these labels. */
  place({ metadata }: Stored<Pod>, member: string): Placed | undefined {
    const { uid, namespace = "", labels = {} } = metadata;
    const before = this.#placements.get(uid);
    if (before?.member === member && jsonEqual(before.labels, labels)) return undefined;
    const isFirst = !this.any(member, namespace);
    const left = before?.member === member ? undefined : this.forget(uid);
    this.#placements.set(uid, { member, namespace, labels });
    this.#index.set(uid, [member, groupOf(member, namespace)]);
    return { isFirst, ...(left === undefined ? {} : { left }) };
  }

  /** Returns the pod's place if it was the last of its namespace there. */
  forget(uid: string): PlaceInMember | undefined {
    const placement = this.#placements.get(uid);
    if (placement === undefined) return undefined;
    this.#placements.delete(uid);
    this.#index.delete(uid);
    return this.any(placement.member, placement.namespace) ? undefined : placement;
  }

  memberOf(uid: string): string | undefined {
    return this.#placements.get(uid)?.member;
  }

  any(member: string, namespace: string): boolean {
    return this.#index.has(groupOf(member, namespace));
  }

  namespacesIn(member: string): string[] {
    const namespaces = new Set<string>();
    for (const uid of this.#index.of(member)) namespaces.add(this.#placements.get(uid)?.namespace ?? "");
    return [...namespaces];
  }

  *labelsIn(member: string, namespace: string): Iterable<Labels> {
    for (const uid of this.#index.of(groupOf(member, namespace))) yield this.#placements.get(uid)?.labels ?? {};
  }
}

function groupOf(member: string, namespace: string): string {
  return `${member}/${namespace}`;
}
