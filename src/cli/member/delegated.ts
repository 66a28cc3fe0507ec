import type { DelegatedType } from "../../api/delegated-type.ts";
import type { Job, KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { counted } from "../../api/wording.ts";
import type { WholeFamily } from "../../copies/whole-families.ts";
import { some } from "../shared/output.ts";
import { namespacedName } from "../shared/reading.ts";

/** The objects that a host gives to members, by family. Types stand for whole objects. */
interface FamilyObjects {
  readonly pods: Pod;
  readonly jobs: Job;
  readonly types: DelegatedType;
}

/** Objects of all families. Commands that take a member or Legation away deal with each. */
export type Delegated = { readonly [Family in "pods" | WholeFamily]: readonly Stored<FamilyObjects[Family]>[] };

/** Objects that finish. Whole objects of types never do: the controller releases them. */
export type Finishing = Omit<Delegated, "types">;

/** Objects that finish, beside pods. */
export type FinishingWhole = Omit<Finishing, "pods">;

const WORDS: Readonly<Record<keyof Finishing, { readonly noun: string; readonly kind?: string }>> = {
  pods: { noun: "pod" },
  jobs: { noun: "whole Job", kind: "Job" },
};
const FAMILIES = Object.keys(WORDS) as readonly (keyof Finishing)[];

/** Returns the objects with their names: `shop/web-0`, `Job shop/sum`. */
export function namesOf(found: Partial<Finishing>): Map<Stored<KubeObject>, string> {
  const named = FAMILIES.flatMap((family) => {
    const { kind } = WORDS[family];
    return (found[family] ?? []).map((object): [Stored<KubeObject>, string] => {
      return [object, `${kind === undefined ? "" : `${kind} `}${namespacedName(object)}`];
    });
  });
  return new Map(named);
}

/** Formats how many there are: `2 pods and 1 whole Job`. `pod`: what pods are called. */
export function countsOf(found: Partial<Finishing>, pod: string = WORDS.pods.noun): string {
  const counts = FAMILIES.flatMap((family) => {
    const { length } = found[family] ?? [];
    return length === 0 ? [] : [counted(length, family === "pods" ? pod : WORDS[family].noun)];
  });
  return counts.join(" and ");
}

/** Formats objects with what they do: `2 pods and 1 whole Job run there: shop/web-0, shop/web-1, Job shop/sum`. */
export function unfinishedText(
  found: Partial<Finishing>,
  { pod, does, many }: { readonly pod?: string; readonly does: string; readonly many: string },
): string {
  const names = [...namesOf(found).values()];
  return `${countsOf(found, pod)} ${names.length === 1 ? does : many}: ${some(names)}`;
}
