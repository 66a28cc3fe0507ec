import fastJsonPatch from "fast-json-patch";
import type { AdmissionRequest } from "../../../webhook/admission-review.ts";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import type { Verdict } from "../../../webhook/responses.ts";
import { validateNamespace } from "../../../webhook/validate-namespace.ts";
import { type DelegationMode, delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATION_LABEL, GROUP } from "../../api/keys.ts";
import type { Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isProxy } from "../../pods/proxy.ts";
import type { WrittenObject } from "./documents.ts";

/** What admission would make of an object, or why it would refuse it. */
export type Admitted<T> =
  | { readonly object: T; readonly warnings: readonly string[]; readonly denied?: never }
  | { readonly denied: string };

/** They serve the cluster itself (manifests/policies.yaml, legation-namespaces). */
export const RESERVED_NAMESPACES: ReadonlySet<string> = new Set([
  "kube-system",
  "kube-public",
  "kube-node-lease",
  "legation-system",
]);

/** The namespace as policy and webhook let it in; `before`: as the host has it. Each looks at what changes alone. */
export function admitNamespace(
  namespace: Stored<Namespace>,
  before: Stored<Namespace> | undefined,
): Admitted<Stored<Namespace>> {
  const { name, labels, annotations = {} } = namespace.metadata;
  const label = labels?.[DELEGATION_LABEL];
  if (label !== undefined && label !== before?.metadata.labels?.[DELEGATION_LABEL]) {
    const problem = labelProblem(namespace);
    if (problem !== undefined) return { denied: `label ${DELEGATION_LABEL}: ${problem}` };
  }
  const changed = Object.entries(annotations).some(
    ([key, value]) => key.startsWith(`${GROUP}/`) && value !== before?.metadata.annotations?.[key],
  );
  if (!changed) return { object: namespace, warnings: [] };
  return admitted(
    namespace,
    validateNamespace({ ...request("", "Namespace"), object: { metadata: { name, annotations } } }),
  );
}

/** In the words of the policy. */
function labelProblem(namespace: Stored<Namespace>): string | undefined {
  const { name, labels } = namespace.metadata;
  if (delegationModeOf(labels) === undefined) {
    return (
      `"${labels?.[DELEGATION_LABEL]}" is no mode; write "annotated" (pods that ask are delegated), "all" (every pod is) or ` +
      '"overflow" (every pod for which this cluster has no place), or remove the label'
    );
  }
  if (!RESERVED_NAMESPACES.has(name)) return undefined;
  return `namespace ${name} serves this cluster itself, so its pods cannot be delegated; remove the label`;
}

/** The workload as the webhook lets it in. */
export function admitWorkload(object: WrittenObject, mode: DelegationMode): Admitted<WrittenObject> {
  const [group = ""] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : [];
  return admitted(object, mutateWorkload({ ...request(group, object.kind), object }, mode));
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
