import { z } from "zod";
import { clusterNameProblem } from "./cluster.ts";
import { type ClusterAffinity, clusterAffinitySchema } from "./cluster-affinity.ts";
import { CLUSTER_AFFINITY_ANNOTATION, CLUSTER_SELECTOR_ANNOTATION, CLUSTERS_ANNOTATION } from "./keys.ts";
import type { LabelSelector } from "./label-selector.ts";
import { parsePreferences, type SchedulingPreferences } from "./preferences.ts";
import { structuredTextReader } from "./structured-text.ts";

/** What an annotation of another project says in Legation's terms. */
export interface ForeignPlacement {
  readonly delegate?: boolean;
  readonly clusters?: readonly string[];
  readonly selector?: LabelSelector;
  readonly selectorText?: string;
  readonly affinity?: ClusterAffinity;
  readonly preferences?: SchedulingPreferences;
}

const ADMIRALTY = "multicluster.admiralty.io/";
const FEDERATION = "federation.kubernetes.io/";

const constraintsSchema = z.strictObject({
  nodeSelector: z.record(z.string(), z.string()).exactOptional(),
  affinity: z.strictObject({ nodeAffinity: clusterAffinitySchema.exactOptional() }).exactOptional(),
});

const constraints = structuredTextReader(constraintsSchema);

/** Whether the key is one of another project's that says where pods run; what Federation v1 has beside these is its own. */
export function isForeignKey(key: string): boolean {
  return key.startsWith(ADMIRALTY) || (key.startsWith(FEDERATION) && key.endsWith("-preferences"));
}

/** What the annotation says, or what of it Legation does not do and what to write instead. */
export function readForeignAnnotation(key: string, text: string): ForeignPlacement | string {
  switch (key) {
    case `${FEDERATION}replica-set-preferences`:
    case `${FEDERATION}deployment-preferences`: {
      const parsed = parsePreferences(text);
      return "problem" in parsed ? parsed.problem : { preferences: parsed };
    }
    // Its value never mattered.
    case `${ADMIRALTY}elect`:
      return { delegate: true };
    // Of the time before its own scheduler: one cluster by name.
    case `${ADMIRALTY}clustername`: {
      const problem = clusterNameProblem(text);
      return problem === undefined ? { clusters: [text] } : `${JSON.stringify(text.slice(0, 100))} ${problem}`;
    }
    // Nothing is ever reserved here.
    case `${ADMIRALTY}no-reservation`:
      return {};
    case `${ADMIRALTY}proxy-pod-scheduling-constraints`:
      return readConstraints(key, text);
    case `${ADMIRALTY}use-constraints-from-spec-for-proxy-pod-scheduling`:
      return (
        "constraints of the pod's spec are for the nodes of its member; write those for clusters as " +
        `${CLUSTER_SELECTOR_ANNOTATION} or ${CLUSTER_AFFINITY_ANNOTATION}, and remove it`
      );
    default:
      return `is not known to Legation; remove it, and write ${CLUSTERS_ANNOTATION} or ${CLUSTER_SELECTOR_ANNOTATION} to choose clusters`;
  }
}

function readConstraints(key: string, text: string): ForeignPlacement | string {
  const parsed = constraints(text);
  if (!parsed.ok) {
    return `${parsed.problems.join("; ")}; nodeSelector and affinity.nodeAffinity are understood, write anything else as annotations of Legation`;
  }
  const { nodeSelector, affinity } = parsed.value;
  const labels = Object.entries(nodeSelector ?? {});
  return {
    ...(labels.length === 0
      ? {}
      : {
          selector: labels.map(([key, value]) => ({ key, operator: "In" as const, values: [value] })),
          selectorText: `${key} "${labels.map(([label, value]) => `${label}=${value}`).join(",")}"`,
        }),
    ...(affinity?.nodeAffinity === undefined ? {} : { affinity: affinity.nodeAffinity }),
  };
}
