import fastJsonPatch from "fast-json-patch";
import type { AdmissionRequest, ReviewedObject } from "../../webhook/admission-review.ts";
import { dropLeftovers } from "../../webhook/drop-leftovers.ts";
import { mutatePod } from "../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../webhook/mutate-workload.ts";
import { inTurn, type Verdict } from "../../webhook/responses.ts";
import type { FindType } from "../../webhook/whole.ts";
import { mutateObject } from "../../webhook/whole-objects.ts";
import type { DelegatedType } from "../api/delegated-type.ts";
import type { DelegationMode } from "../api/delegation-mode.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { isOverflow } from "../pods/overflow.ts";
import { isProxy } from "../pods/proxy.ts";

type WrittenObject = ReviewedObject & { readonly apiVersion: string; readonly kind: string };

export type Admitted<T> =
  | { readonly object: T; readonly warnings: readonly string[]; readonly denied?: never }
  | { readonly denied: string; readonly warnings?: never };

/** Runs the webhook's code on a workload. */
export function admitWorkload<T extends WrittenObject>(object: T, mode: DelegationMode): Admitted<T> {
  return admitted(object, mutateWorkload({ ...request(groupOf(object), object.kind), object }, mode));
}

/** Runs the webhook's code on an object that asks to go to members whole. */
export function admitObject<T extends WrittenObject>(object: T, types: readonly DelegatedType[]): Admitted<T> {
  const findType: FindType = (group, kind) => typeAmong(types, { group, kind }) ?? "none";
  const created = { ...request(groupOf(object), object.kind), object };
  const verdict = inTurn(created, dropLeftovers(created, true, findType), (one) => mutateObject(one, findType));
  return admitted(object, verdict);
}

/** Runs the webhook's code on a pod: it becomes a proxy where it is delegated, and is marked where the host is asked first. */
export function admitPod(pod: Stored<Pod>, mode: DelegationMode): Admitted<Stored<Pod>> {
  const { finalizers: _, ...metadata } = pod.metadata;
  const object: ReviewedObject = { ...pod, metadata };
  const created = { ...request("", "Pod"), object };
  const verdict = inTurn(
    created,
    dropLeftovers(created, true, () => "none"),
    (one) => mutatePod(one, mode),
  );
  return admitted(pod, verdict);
}

export function isDelegated(pod: Stored<Pod>): boolean {
  return isProxy(pod) || isOverflow(pod);
}

/** Returns the DelegatedType of a group and kind. */
export function typeAmong(
  types: readonly DelegatedType[],
  { group, kind }: { readonly group: string; readonly kind: string },
): DelegatedType | undefined {
  return types.find(({ spec }) => (spec.group ?? "") === group && spec.kind === kind);
}

/** Returns the API group of an object. Empty for the core group. */
export function groupOf({ apiVersion }: Pick<WrittenObject, "apiVersion">): string {
  const [group = ""] = apiVersion.includes("/") ? apiVersion.split("/") : [];
  return group;
}

function request(group: string, kind: string): Omit<AdmissionRequest, "object"> {
  return { uid: "plan", operation: "CREATE", kind: { group, kind }, oldObject: undefined };
}

function admitted<T>(object: T, verdict: Verdict): Admitted<T> {
  if (verdict.kind === "denied") return { denied: verdict.message };
  const { warnings } = verdict;
  if (verdict.kind === "allowed") return { object, warnings };
  return { object: fastJsonPatch.applyPatch(structuredClone(object), verdict.patch).newDocument, warnings };
}
