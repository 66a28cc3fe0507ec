import type { Placement } from "../src/api/annotations.ts";
import {
  FAILOVER_ANNOTATION,
  MODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  PREFERENCES_ANNOTATION,
  VIRTUAL_NODE_TAINT,
} from "../src/api/keys.ts";
import type { Toleration } from "../src/api/kubernetes.ts";
import { hostClaim, toleratesVirtualNodes } from "../src/pods/overflow.ts";
import type { PodFields } from "./pod-fields.ts";

/** Returns why a pod cannot be in overflow mode. */
export function overflowProblems({ failover }: Placement, tolerations: readonly Toleration[]): string[] {
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
export function overflowWarnings({ preferences }: Placement, spec: PodFields): string[] {
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
export function idleOverflowWarnings({ overflowAfterSeconds }: Placement): string[] {
  if (overflowAfterSeconds === undefined) return [];
  return [`${OVERFLOW_AFTER_ANNOTATION}: has no effect without ${MODE_ANNOTATION}: "overflow"`];
}
