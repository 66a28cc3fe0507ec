import type { DelegatedType } from "../../api/delegated-type.ts";
import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { counted } from "../../api/wording.ts";
import { some } from "./output.ts";
import { namespacedName } from "./reading.ts";

/**
 * The objects that a host gives to members, by family. Commands that take a member or Legation away deal with each: the compiler
 * names those that a new family is missing from.
 */
export interface Delegated {
  readonly pods: readonly Stored<Pod>[];
  /** Whole Jobs. */
  readonly jobs: readonly Stored<Job>[];
  /** Types of whole objects, which never finish. The controller releases them. */
  readonly types: readonly Stored<DelegatedType>[];
}

/** Pods and whole Jobs that have not finished. */
export type Unfinished = Omit<Delegated, "types">;

/** Returns the number of pods and Jobs. */
export function countOf({ pods, jobs }: Unfinished): number {
  return pods.length + jobs.length;
}

/** Formats pods and Jobs with what they do: `2 pods and 1 whole Job run there: shop/web-0, shop/web-1, Job shop/sum`. */
export function unfinishedText(
  { pods, jobs }: Unfinished,
  { noun = "pod", does, many }: { readonly noun?: string; readonly does: string; readonly many: string },
): string {
  const counts = [
    ...(pods.length === 0 ? [] : [counted(pods.length, noun)]),
    ...(jobs.length === 0 ? [] : [counted(jobs.length, "whole Job")]),
  ];
  const names = [...pods.map(namespacedName), ...jobs.map((job) => `Job ${namespacedName(job)}`)];
  return `${counts.join(" and ")} ${names.length === 1 ? does : many}: ${some(names)}`;
}
