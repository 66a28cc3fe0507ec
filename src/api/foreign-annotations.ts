import { z } from "zod";
import { clusterNameProblem } from "./cluster.ts";
import { type ClusterAffinity, clusterAffinitySchema } from "./cluster-affinity.ts";
import { CLUSTER_AFFINITY_ANNOTATION, CLUSTER_SELECTOR_ANNOTATION, CLUSTERS_ANNOTATION } from "./keys.ts";
import type { Selector } from "./label-selector.ts";
import { parsePreferences, type SchedulingPreferences } from "./preferences.ts";
import { structuredTextReader } from "./structured-text.ts";

export interface ForeignPlacement {
  readonly delegate?: boolean;
  readonly clusters?: readonly string[];
  readonly selector?: Selector;
  readonly selectorText?: string;
  readonly affinity?: ClusterAffinity;
  readonly preferences?: SchedulingPreferences;
}

const ADMIRALTY = "multicluster.admiralty.io/";
const FEDERATION = "federation.kubernetes.io/";
const ELECT = `${ADMIRALTY}elect`;
const NO_RESERVATION = `${ADMIRALTY}no-reservation`;

const constraintsSchema = z.strictObject({
  nodeSelector: z.record(z.string(), z.string()).exactOptional(),
  affinity: z.strictObject({ nodeAffinity: clusterAffinitySchema.exactOptional() }).exactOptional(),
});

const constraints = structuredTextReader(constraintsSchema);

/** Reports whether the key is another project's placement annotation. Federation v1's other keys are not. */
export function isForeignKey(key: string): boolean {
  return key.startsWith(ADMIRALTY) || (key.startsWith(FEDERATION) && key.endsWith("-preferences"));
}

/** Reports whether the key says where pods go. The others say that they are delegated, or nothing. */
export function isForeignWish(key: string): boolean {
  return isForeignKey(key) && key !== ELECT && key !== NO_RESERVATION;
}

type Reader = (text: string, key: string) => ForeignPlacement | string;

const READERS: Readonly<Record<string, Reader>> = {
  [`${FEDERATION}replica-set-preferences`]: readPreferences,
  [`${FEDERATION}deployment-preferences`]: readPreferences,
  // Admiralty ignores this value.
  [ELECT]: () => ({ delegate: true }),
  // The older form, before Admiralty's own scheduler: one cluster by name.
  [`${ADMIRALTY}clustername`]: (text) => {
    const problem = clusterNameProblem(text);
    return problem === undefined ? { clusters: [text] } : `${JSON.stringify(text.slice(0, 100))} ${problem}`;
  },
  // Legation reserves nothing, so this is always true.
  [NO_RESERVATION]: () => ({}),
  [`${ADMIRALTY}proxy-pod-scheduling-constraints`]: readConstraints,
  [`${ADMIRALTY}use-constraints-from-spec-for-proxy-pod-scheduling`]: () =>
    "constraints of the pod's spec are for the nodes of its member; write those for clusters as " +
    `${CLUSTER_SELECTOR_ANNOTATION} or ${CLUSTER_AFFINITY_ANNOTATION}, and remove it`,
};

/** Keys of other projects that Legation understands. */
export const FOREIGN_KEYS: readonly string[] = Object.keys(READERS);

/** Translates the annotation, or returns the unsupported parts and what to write instead. */
export function readForeignAnnotation(key: string, text: string): ForeignPlacement | string {
  const read = READERS[key];
  if (read !== undefined) return read(text, key);
  return `is not known to Legation; remove it, and write ${CLUSTERS_ANNOTATION} or ${CLUSTER_SELECTOR_ANNOTATION} to choose clusters`;
}

function readPreferences(text: string): ForeignPlacement | string {
  const parsed = parsePreferences(text);
  return "problem" in parsed ? parsed.problem : { preferences: parsed };
}

function readConstraints(text: string, key: string): ForeignPlacement | string {
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
