import { isForeignWish } from "./foreign-annotations.ts";
import {
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  CLUSTERS_ANNOTATION,
  OUTDATED_ANNOTATION,
  PREFERENCES_ANNOTATION,
} from "./keys.ts";

/** Kinds whose wishes are read from the workload. Pods of others have them from their template. */
export const WISHING_KINDS = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"] as const;
export type WishingKind = (typeof WISHING_KINDS)[number];

/** A workload in a pod's namespace. */
export interface WorkloadRef {
  readonly kind: WishingKind;
  readonly name: string;
}

type Annotations = Readonly<Record<string, string>>;

const WISHES: ReadonlySet<string> = new Set([
  CLUSTERS_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTER_AFFINITY_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  PREFERENCES_ANNOTATION,
]);

/** Reports whether the annotation says where pods go, and nothing of what they are. */
export function isWish(key: string): boolean {
  return WISHES.has(key) || isForeignWish(key);
}

export function isWishingKind(kind: string): kind is WishingKind {
  return WISHING_KINDS.some((known) => known === kind);
}

export function wishesAmong(annotations: Annotations = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => isWish(key)));
}

/** Parses `legation.dev/wishes-of`; undefined if it names no workload. */
export function readWishesOf(text: string): WorkloadRef | undefined {
  const [kind = "", name = "", ...more] = text.split("/");
  return isWishingKind(kind) && name !== "" && more.length === 0 ? { kind, name } : undefined;
}

/** Returns the value of `legation.dev/wishes-of`. */
export function wishesOfText({ kind, name }: WorkloadRef): string {
  return `${kind}/${name}`;
}

/** Returns the wishes of which the workload's pod template has an outdated copy. */
export function outdatedWishes(workload: Annotations = {}): ReadonlySet<string> {
  return new Set((workload[OUTDATED_ANNOTATION] ?? "").split(",").filter(isWish));
}

/** Returns a pod's annotations, completed by its workload's wishes. The pod's own win, but for outdated copies. */
export function withWishes(pod: Annotations, workload: Annotations): Annotations {
  const outdated = outdatedWishes(workload);
  const own = Object.entries(pod).filter(([key]) => !outdated.has(key));
  return { ...wishesAmong(workload), ...Object.fromEntries(own) };
}
