import type { DelegatedType } from "../src/api/delegated-type.ts";
import { isJsonObject, setAt, valueAt } from "../src/api/json.ts";
import { RESTRICTED_ANNOTATION } from "../src/api/keys.ts";
import { isRecorded, MOST_RESTRICTED_TYPES, restrictedObjects } from "../src/pods/restricted-objects.ts";
import type { AdmissionRequest } from "./admission-review.ts";
import { annotationProblems } from "./read-annotations.ts";
import { allowed, denied, patchedTo, type Verdict } from "./responses.ts";

/** Controllers that create pods, and templates of pods, as the author of a template wrote them. The policies name them, too. */
const OF_TEMPLATES =
  /^system:(serviceaccount:kube-system:(cronjob|deployment|job|replicaset|replication|statefulset)-controller|kube-controller-manager)$/;

/**
 * Records the objects of restricted types that the pod, or the pod template at a path, names. The policies ask for the verb on
 * what is recorded, and the controller gives members nothing else.
 */
export function recordRestricted(
  { object, user }: AdmissionRequest,
  types: readonly DelegatedType[],
  path: readonly string[] = [],
): Verdict {
  if (object === undefined) return allowed();
  const template = valueAt(object, path);
  const named = isJsonObject(template) ? restrictedObjects(template, types) : "";
  const at = [...path, "metadata", "annotations", RESTRICTED_ANNOTATION];
  const record = valueAt(object, at);
  const entries = named === "" ? [] : named.split(",");
  if (entries.length > MOST_RESTRICTED_TYPES) {
    const says = `the pod names objects of ${entries.length} restricted types, and may name ${MOST_RESTRICTED_TYPES}: ${named}`;
    return denied(annotationProblems(RESTRICTED_ANNOTATION, [says]));
  }
  if (user !== undefined && OF_TEMPLATES.test(user)) {
    const isComplete = entries.every((entry) => {
      const [type = "", ...names] = entry.split("/");
      return names.every((name) => isRecorded(String(record ?? ""), type, name));
    });
    return isComplete ? allowed() : denied(annotationProblems(RESTRICTED_ANNOTATION, [notInTemplate(named)]));
  }
  const wanted = named === "" ? undefined : named;
  return record === wanted ? allowed() : patchedTo(object, setAt(object, at, wanted));
}

function notInTemplate(named: string): string {
  return (
    `the pod names objects for which authors need the verb delegate, and the pod template of its workload does not say so; ` +
    `write ${JSON.stringify(named)} there, as one who has the verb`
  );
}
