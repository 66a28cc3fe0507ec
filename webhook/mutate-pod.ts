import fastJsonPatch from "fast-json-patch";
import { asksForDelegation, type Placement } from "../src/api/annotations.ts";
import { API_ANNOTATION, HOST_LABEL, PROXY_LABEL } from "../src/api/keys.ts";
import type { Pod } from "../src/api/kubernetes.ts";
import { toProxy } from "../src/pods/proxy.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { placementWarnings, readAnnotations } from "./author-problems.ts";
import { nodeNameProblem, type PodFields, readPodSpec, specWarnings } from "./pod-fields.ts";
import { allowed, denied, patched, type Verdict } from "./responses.ts";

/** What a namespace's label says: pods that ask are delegated, or every pod is. */
export type DelegationMode = "annotated" | "all";

// On the pod by which a kubelet shows a static pod that it runs already.
const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

/** Turns a pod that is to be delegated into a proxy, by the smallest patch; refuses what cannot be delegated. */
export function mutatePod({ object, operation }: AdmissionRequest, mode: DelegationMode): Verdict {
  if (object === undefined || operation !== "CREATE") return allowed();
  const { labels, annotations = {}, ownerReferences = [] } = object.metadata;
  // The API server does not ask about these (matchConditions); whoever wrote other conditions gets the same answer.
  if (labels?.[HOST_LABEL] !== undefined || annotations[MIRROR_ANNOTATION] !== undefined) return allowed();
  if (ownerReferences.some(({ kind, controller }) => kind === "DaemonSet" && controller === true)) return allowed();

  const { placement, problems } = readAnnotations(annotations, { proxy: labels?.[PROXY_LABEL] !== undefined });
  const spec = readPodSpec(object.spec);
  if (typeof spec === "string") return denied([...problems, spec]);
  const wanted = mode === "all" ? placement.delegate !== false : asksForDelegation(placement);
  const nodeProblem = wanted ? nodeNameProblem(spec.nodeName ?? "") : undefined;
  const all = nodeProblem === undefined ? problems : [...problems, nodeProblem];
  if (all.length > 0) return denied(all);
  if (!wanted) return allowed([...placementWarnings(placement), ...idleWarnings(placement)]);
  return patched(proxyPatch(object, spec), [...placementWarnings(placement), ...specWarnings(spec)]);
}

/** What says how a pod is delegated, on one that is not. */
function idleWarnings({ api }: Placement): string[] {
  return api === undefined
    ? []
    : [`${API_ANNOTATION}: the pod is not delegated, so its API server is this cluster's own`];
}

/** The JSON patch from the pod to its proxy; empty when it is one. Only the fields that `toProxy` owns are compared. */
function proxyPatch({ metadata }: ReviewedObject, { schedulerName }: PodFields): fastJsonPatch.Operation[] {
  const { labels, annotations, finalizers } = metadata;
  const pod: Pod = {
    metadata: {
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
    },
    spec: { containers: [], ...(schedulerName == null ? {} : { schedulerName }) },
  };
  return fastJsonPatch.compare(pod, toProxy(pod));
}
