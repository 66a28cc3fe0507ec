import fastJsonPatch from "fast-json-patch";
import type { AdmissionRequest } from "../../../webhook/admission-review.ts";
import { type DelegationMode, mutatePod } from "../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import type { Verdict } from "../../../webhook/responses.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import type { Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isProxy } from "../../pods/proxy.ts";
import type { WrittenObject } from "./documents.ts";

/** What admission would make of an object, or why it would refuse it. */
export type Admitted<T> =
  | { readonly object: T; readonly warnings: readonly string[]; readonly denied?: never }
  | { readonly denied: string };

const MODES: readonly DelegationMode[] = ["annotated", "all", "overflow"];

/** Which of the namespace's pods are delegated; undefined: none. */
export function delegationMode({ metadata }: Namespace): DelegationMode | undefined {
  return MODES.find((mode) => mode === metadata?.labels?.[DELEGATION_LABEL]);
}

/** The workload as the webhook lets it in. */
export function admitWorkload(object: WrittenObject): Admitted<WrittenObject> {
  const [group = ""] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : [];
  return admitted(object, mutateWorkload({ ...request(group, object.kind), object }));
}

/** The pod as the webhook lets it in: a proxy where it is to be delegated, marked where the host is asked first. */
export function admitPod(
  pod: Stored<Pod>,
  mode: DelegationMode,
): Admitted<Stored<Pod>> & { readonly delegated?: boolean } {
  const { ownerReferences, finalizers, ...metadata } = pod.metadata;
  const object = { ...pod, metadata: { ...metadata, ...(ownerReferences === undefined ? {} : { ownerReferences }) } };
  const result = admitted(pod, mutatePod({ ...request("", "Pod"), object }, mode));
  return result.denied === undefined
    ? { ...result, delegated: isProxy(result.object) || isOverflow(result.object) }
    : result;
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
