import type { RequestedPlacement } from "../src/api/annotations.ts";
import {
  FAILOVER_ANNOTATION,
  MODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  PREFERENCES_ANNOTATION,
  VIRTUAL_NODE_TAINT,
} from "../src/api/keys.ts";
import type { Pod, Toleration } from "../src/api/kubernetes.ts";
import { hostClaim, toleratesVirtualNodes, toOverflow } from "../src/pods/overflow.ts";
import type { ReviewedObject } from "./admission-review.ts";
import { isVirtualNode, nodeNameProblem, type PodFields, specWarnings } from "./pod-fields.ts";
import { placementWarnings, spreadWarnings } from "./read-annotations.ts";
import { allowed, denied, patchedTo, type Verdict } from "./responses.ts";

/** Marks a pod that asks the host's scheduler first, or refuses it. A pod with a node is never delegated. */
export function mutateOverflow(
  object: ReviewedObject,
  spec: PodFields,
  placement: RequestedPlacement,
  problems: readonly string[],
  slotted: (pod: Pod) => Pod = (pod) => pod,
): Verdict {
  const nodeName = spec.nodeName ?? "";
  const nodeProblem = isVirtualNode(nodeName) ? nodeNameProblem(nodeName) : undefined;
  const all = [...problems, nodeProblem ?? [], overflowProblems(placement, spec.tolerations ?? [])].flat();
  if (all.length > 0) return denied(all);
  if (nodeName !== "") {
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
  return patchedTo(pod, slotted(toOverflow(pod)), warnings);
}

/** Returns why a pod cannot be in overflow mode. */
export function overflowProblems({ failover }: RequestedPlacement, tolerations: readonly Toleration[]): string[] {
  const problems: string[] = [];
  if (failover !== undefined) {
    problems.push(
      `annotation ${FAILOVER_ANNOTATION}: is written into tolerations, which would hold on this cluster's own nodes, too; ` +
        `remove it, or write ${MODE_ANNOTATION}: "always"`,
    );
  }
  if (toleratesVirtualNodes(tolerations)) {
    problems.push(
      `spec.tolerations: the taint ${VIRTUAL_NODE_TAINT} is tolerated, so this cluster's scheduler would choose a virtual ` +
        `node, which it may not; name the keys that the pod has to tolerate, or write ${MODE_ANNOTATION}: "always"`,
    );
  }
  return problems;
}

/** Returns warnings for settings without full effect in overflow mode. */
export function overflowWarnings({ preferences }: RequestedPlacement, spec: PodFields): string[] {
  const warnings: string[] = [];
  const claim = hostClaim(spec);
  if (claim !== undefined) {
    warnings.push(`${claim}: its claim is this cluster's, so the pod is never delegated in mode "overflow"`);
  }
  if (preferences !== undefined) {
    warnings.push(`${PREFERENCES_ANNOTATION}: has no effect in mode "overflow": pods go where there is room`);
  }
  return warnings;
}

/** Warns of overflow settings on a pod that is delegated at once. */
export function idleOverflowWarnings({ overflowAfterSeconds }: RequestedPlacement): string[] {
  if (overflowAfterSeconds === undefined) return [];
  return [`${OVERFLOW_AFTER_ANNOTATION}: has no effect without ${MODE_ANNOTATION}: "overflow"`];
}
