import { asksForDelegation, isAuthorKey, parsePlacement } from "../../api/annotations.ts";
import { delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATE_ANNOTATION, DELEGATION_LABEL } from "../../api/keys.ts";
import type { Namespace, ObjectMeta, Stored } from "../../api/kubernetes.ts";

type Metadata = Pick<ObjectMeta, "labels" | "annotations" | "ownerReferences">;

/**
 * Why a pod with this metadata is the host's own, and what to write. `namespace`: the pod's, as it is now; undefined when it may not be read.
 */
export function whyNotDelegated(metadata: Metadata, namespace: Stored<Namespace> | undefined): string {
  const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
  if (namespace === undefined) return "its namespace, workload or itself did not ask for delegation";
  if (ownerReferences.some(({ kind, controller }) => kind === "DaemonSet" && controller === true)) {
    return "pods of DaemonSets belong to nodes of this cluster";
  }
  const { name } = namespace.metadata;
  const mode = delegationModeOf(namespace.metadata.labels);
  if (mode === undefined) {
    const command = `kubectl label namespace ${name} ${DELEGATION_LABEL}=annotated`;
    return `namespace ${name} has no label ${DELEGATION_LABEL}: write \`${command}\`, then make its pods anew`;
  }
  if (annotations[DELEGATE_ANNOTATION] === "false") return `its annotation ${DELEGATE_ANNOTATION} is "false"`;
  const read = parsePlacement(annotations);
  const asks = mode !== "annotated" || (read.ok && asksForDelegation(read.placement));
  if (asks) {
    return "it was made before it, its workload or its namespace asked for delegation: pods are not moved, so make it anew";
  }
  const misplaced = Object.keys(labels).find(isAuthorKey);
  if (misplaced !== undefined) {
    return `${misplaced} is a label of it, and says something only as an annotation: write it under metadata.annotations`;
  }
  return `nothing asks for it: write the annotation ${DELEGATE_ANNOTATION}: "true" on its workload; a bare pod has to be made anew with it`;
}
