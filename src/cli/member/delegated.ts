import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { counted } from "../../api/wording.ts";
import type { WholeType } from "../../whole/type.ts";
import { some } from "../shared/output.ts";
import { namespacedName } from "../shared/reading.ts";

/** An object of a built-in type that members get whole. */
export interface FoundWhole {
  readonly type: WholeType;
  readonly object: Stored<KubeObject>;
}

/** Work that a host gives to members, and that ends. Objects of DelegatedTypes never do: the controller releases them. */
export interface Finishing {
  readonly pods: readonly Stored<Pod>[];
  readonly whole: readonly FoundWhole[];
}

/** Returns the objects with their names: `shop/web-0`, `Job shop/sum`. */
export function namesOf({ pods = [], whole = [] }: Partial<Finishing>): Map<Stored<KubeObject>, string> {
  return new Map<Stored<KubeObject>, string>([
    ...pods.map((pod) => [pod, namespacedName(pod)] as const),
    ...whole.map((found) => [found.object, wholeName(found)] as const),
  ]);
}

export function wholeName({ type, object }: FoundWhole): string {
  return `${type.resource.kind} ${namespacedName(object)}`;
}

/** Formats how many there are: `2 pods and 1 whole Job`. `pod`: what pods are called. */
export function countsOf({ pods = [], whole = [] }: Partial<Finishing>, pod = "pod"): string {
  const byKind = Map.groupBy(whole, ({ type }) => `whole ${type.resource.kind}`);
  const counts = [[pod, pods.length] as const, ...[...byKind].map(([noun, found]) => [noun, found.length] as const)];
  return counts.flatMap(([noun, number]) => (number === 0 ? [] : [counted(number, noun)])).join(" and ");
}

/** Formats objects with what they do: `2 pods and 1 whole Job run there: shop/web-0, shop/web-1, Job shop/sum`. */
export function unfinishedText(
  found: Partial<Finishing>,
  { pod, does, many }: { readonly pod?: string; readonly does: string; readonly many: string },
): string {
  const names = [...namesOf(found).values()];
  return `${countsOf(found, pod)} ${names.length === 1 ? does : many}: ${some(names)}`;
}
