import { annotationRoomProblem } from "../src/api/annotation-room.ts";
import type { DelegatedType } from "../src/api/delegated-type.ts";
import { type DelegationMode, isDelegationWanted } from "../src/api/delegation-mode.ts";
import { HOST_LABEL, PROXY_LABEL, SLOT_LABEL, WHOLE_KEY } from "../src/api/keys.ts";
import type { Pod } from "../src/api/kubernetes.ts";
import { isOverflowMode } from "../src/api/overflow.ts";
import { withEndlessTolerations } from "../src/pods/failover.ts";
import { toProxy, withSlot } from "../src/pods/proxy.ts";
import type { AdmissionRequest } from "./admission-review.ts";
import { idleOverflowWarnings, mutateOverflow } from "./overflow.ts";
import { ephemeralWarnings, fieldsOfMarks, nodeNameProblem, readPodSpec, specWarnings } from "./pod-fields.ts";
import {
  idleWarnings,
  overrideProblems,
  placementWarnings,
  readAnnotations,
  spreadWarnings,
} from "./read-annotations.ts";
import { allowed, denied, inTurn, patchedTo, type Verdict } from "./responses.ts";
import { recordRestricted } from "./restricted-objects.ts";

/** Annotation on the mirror pod of a kubelet's static pod. */
export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

/**
 * Turns a pod to delegate into a proxy by the smallest patch, or refuses it. `types`: those whose objects pods name.
 * `labelsSlots`: the proxy gets the label by which one of several shards selects it.
 */
export function mutatePod(
  request: AdmissionRequest,
  mode: DelegationMode,
  types: readonly DelegatedType[] = [],
  labelsSlots = false,
): Verdict {
  const { object, operation } = request;
  if (object === undefined || operation !== "CREATE") return allowed();
  const { labels, annotations = {}, ownerReferences = [] } = object.metadata;
  // The installed matchConditions exclude these. An operator's own configuration may send them nevertheless.
  if (labels?.[HOST_LABEL] !== undefined || annotations[MIRROR_ANNOTATION] !== undefined) return allowed();
  if (ownerReferences.some(({ kind, controller }) => kind === "DaemonSet" && controller === true)) return allowed();

  const { placement, problems: annotationProblems } = readAnnotations(annotations, {
    proxy: labels?.[PROXY_LABEL] !== undefined,
  });
  // A label of another namespace's slot, copied with a pod, would hide the pod from its shard.
  const slotted = (pod: Pod): Pod =>
    labelsSlots || labels?.[SLOT_LABEL] !== undefined ? withSlot(pod, request.namespace ?? "") : pod;
  const spec = readPodSpec(object.spec);
  if (typeof spec === "string") return denied([...annotationProblems, spec]);
  const wanted = isDelegationWanted(placement, mode);
  if (placement.whole === true)
    return denied([`annotation ${WHOLE_KEY}: is read on Jobs alone; remove it from the pod`]);
  const problems = wanted ? [...annotationProblems, ...overrideProblems(placement, object.spec)] : annotationProblems;
  if (wanted && isOverflowMode(placement, mode)) {
    return inTurn(request, mutateOverflow(object, spec, placement, problems, slotted), (marked) =>
      marked.object?.metadata.labels?.[PROXY_LABEL] === undefined ? allowed() : recordRestricted(marked, types),
    );
  }
  const nodeProblem = wanted ? nodeNameProblem(spec.nodeName ?? "") : undefined;
  const roomProblem = wanted ? annotationRoomProblem(annotations) : undefined;
  const all = [...problems, ...[nodeProblem, roomProblem].filter((problem) => problem !== undefined)];
  if (all.length > 0) return denied(all);
  if (!wanted) return allowed([...placementWarnings(placement), ...idleWarnings(annotations, placement)]);
  const warnings = [
    ...placementWarnings(placement),
    ...idleOverflowWarnings(placement),
    ...specWarnings(spec),
    ...ephemeralWarnings(spec),
    ...spreadWarnings(object, placement),
  ];
  // Only fields that `toProxy` owns are compared.
  const pod = fieldsOfMarks(object, spec);
  const proxy = slotted(toProxy(pod));
  const marks = patchedTo(pod, placement.failover === undefined ? proxy : withEndlessTolerations(proxy), warnings);
  return inTurn(request, marks, (marked) => recordRestricted(marked, types));
}
