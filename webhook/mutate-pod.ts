import fastJsonPatch from "fast-json-patch";
import type { Placement } from "../src/api/annotations.ts";
import { type DelegationMode, isWanted, overflowModeOf } from "../src/api/delegation-mode.ts";
import { CLUSTER_SPREAD_ANNOTATION, HOST_LABEL, PROXY_LABEL } from "../src/api/keys.ts";
import type { Pod } from "../src/api/kubernetes.ts";
import { withEndlessTolerations } from "../src/pods/failover.ts";
import { toOverflow } from "../src/pods/overflow.ts";
import { toProxy } from "../src/pods/proxy.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { idleWarnings, overrideProblems, placementWarnings, readAnnotations } from "./author-problems.ts";
import { idleOverflowWarnings, overflowProblems, overflowWarnings } from "./overflow-problems.ts";
import {
  ephemeralWarnings,
  fieldsOfMarks,
  isVirtualNode,
  nodeNameProblem,
  type PodFields,
  readPodSpec,
  specWarnings,
} from "./pod-fields.ts";
import { allowed, denied, patched, type Verdict } from "./responses.ts";

/** Annotation on the mirror pod of a kubelet's static pod. */
export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

/** Turns a pod to delegate into a proxy by the smallest patch, or refuses it. */
export function mutatePod({ object, operation }: AdmissionRequest, mode: DelegationMode): Verdict {
  if (object === undefined || operation !== "CREATE") return allowed();
  const { labels, annotations = {}, ownerReferences = [] } = object.metadata;
  // matchConditions exclude these; custom conditions get the same answer.
  if (labels?.[HOST_LABEL] !== undefined || annotations[MIRROR_ANNOTATION] !== undefined) return allowed();
  if (ownerReferences.some(({ kind, controller }) => kind === "DaemonSet" && controller === true)) return allowed();

  const { placement, problems: written } = readAnnotations(annotations, { proxy: labels?.[PROXY_LABEL] !== undefined });
  const spec = readPodSpec(object.spec);
  if (typeof spec === "string") return denied([...written, spec]);
  const wanted = isWanted(placement, mode);
  const problems = wanted ? [...written, ...overrideProblems(placement, object.spec)] : written;
  if (wanted && overflowModeOf(placement, mode) === "overflow")
    return mutateOverflow(object, spec, placement, problems);
  const nodeProblem = wanted ? nodeNameProblem(spec.nodeName ?? "") : undefined;
  const all = nodeProblem === undefined ? problems : [...problems, nodeProblem];
  if (all.length > 0) return denied(all);
  if (!wanted) return allowed([...placementWarnings(placement), ...idleWarnings(annotations, placement)]);
  const warnings = [
    ...placementWarnings(placement),
    ...idleOverflowWarnings(placement),
    ...specWarnings(spec),
    ...ephemeralWarnings(spec),
    ...spreadWarnings(object, placement),
  ];
  return patched(proxyPatch(object, spec, placement), warnings);
}

/** Marks a pod in overflow mode. A pod with a node stays the host's. */
function mutateOverflow(
  object: ReviewedObject,
  spec: PodFields,
  placement: Placement,
  problems: readonly string[],
): Verdict {
  const { nodeName = "" } = spec;
  const nodeProblem = isVirtualNode(nodeName ?? "") ? nodeNameProblem(nodeName ?? "") : undefined;
  const all = [
    ...problems,
    ...(nodeProblem === undefined ? [] : [nodeProblem]),
    ...overflowProblems(placement, spec.tolerations ?? []),
  ];
  if (all.length > 0) return denied(all);
  if (nodeName != null && nodeName !== "") {
    return allowed([`spec.nodeName: the pod has its node ${JSON.stringify(nodeName)}, so it is never delegated`]);
  }
  const warnings = [
    ...placementWarnings(placement),
    ...overflowWarnings(placement, spec),
    ...specWarnings(spec),
    ...spreadWarnings(object, placement),
  ];
  const { labels } = object.metadata;
  const pod: Pod = { metadata: labels === undefined ? {} : { labels } };
  return patched(fastJsonPatch.compare(pod, toOverflow(pod)), warnings);
}

/** Warns of a spread constraint on a pod without a controller. */
function spreadWarnings({ metadata }: ReviewedObject, { spread = [] }: Placement): string[] {
  const owned = metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false;
  if (owned || spread.every(({ labelSelector }) => labelSelector !== undefined)) return [];
  return [
    `${CLUSTER_SPREAD_ANNOTATION}: the pod has no controller, and so none to be spread with; write a labelSelector, or it has no effect`,
  ];
}

/** Returns the JSON patch from the pod to its proxy. Only fields that `toProxy` owns are compared. */
function proxyPatch(object: ReviewedObject, spec: PodFields, { failover }: Placement): fastJsonPatch.Operation[] {
  const pod = fieldsOfMarks(object, spec);
  const proxy = toProxy(pod);
  return fastJsonPatch.compare(pod, failover === undefined ? proxy : withEndlessTolerations(proxy));
}
