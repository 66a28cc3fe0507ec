import { z } from "zod";
import { defined } from "../src/api/defined.ts";
import { isJsonObject } from "../src/api/json.ts";
import {
  CLUSTERS_ANNOTATION,
  DELEGATE_ANNOTATION,
  GROUP_ANNOTATION,
  VIRTUAL_NODE_LABEL,
  VIRTUAL_NODE_PREFIX,
} from "../src/api/keys.ts";
import type { Container, Pod, PodSpec, Toleration } from "../src/api/kubernetes.ts";
import { OTHER_ROLES, VIRTUAL_NODE_KIND } from "../src/api/virtual-node.ts";
import { issues, type ReviewedObject } from "./admission-review.ts";

/** A part of one of Kubernetes' types as authors write it: any field may be absent, or null. */
type Written<T> = T extends readonly (infer Item)[]
  ? readonly Written<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: Written<T[Key]> | null | undefined }
    : T;

type Affinity = NonNullable<PodSpec["affinity"]>;
type PodTerms = Written<NonNullable<Affinity["podAffinity"]>>;

/** The fields of a pod's spec that admission reads. The API server checks the rest. */
export type PodFields = Written<
  Pick<PodSpec, "schedulerName" | "nodeName" | "hostNetwork" | "volumes" | "resourceClaims"> & {
    readonly affinity: Pick<Affinity, "podAffinity" | "podAntiAffinity">;
    readonly containers: readonly Pick<Container, "ports">[];
    readonly initContainers: readonly Pick<Container, "ports">[];
  }
> & {
  readonly nodeSelector?: Readonly<Record<string, unknown>> | null | undefined;
  readonly tolerations?: readonly Toleration[] | null | undefined;
};

type Volume = NonNullable<NonNullable<PodFields["volumes"]>[number]>;

const container = z.object({ ports: z.array(z.object({ hostPort: z.number().nullish() })).nullish() });
const podTerm = z.object({ topologyKey: z.string().nullish() });
const podTerms = z.object({
  requiredDuringSchedulingIgnoredDuringExecution: z.array(podTerm).nullish(),
  preferredDuringSchedulingIgnoredDuringExecution: z.array(z.object({ podAffinityTerm: podTerm.nullish() })).nullish(),
});
const podSpec: z.ZodType<PodFields> = z.object({
  schedulerName: z.string().nullish(),
  nodeName: z.string().nullish(),
  nodeSelector: z.record(z.string(), z.unknown()).nullish(),
  hostNetwork: z.boolean().nullish(),
  volumes: z
    .array(
      z.object({
        name: z.string().nullish(),
        // Only their presence counts.
        hostPath: z.custom<Volume["hostPath"]>().optional(),
        persistentVolumeClaim: z.custom<Volume["persistentVolumeClaim"]>().optional(),
        ephemeral: z.custom<Volume["ephemeral"]>().optional(),
      }),
    )
    .nullish(),
  resourceClaims: z.array(z.object({ name: z.string().nullish() })).nullish(),
  // Unchanged, since they go back into the patch.
  tolerations: z.array(z.custom<Toleration>((value) => isJsonObject(value))).nullish(),
  affinity: z.object({ podAffinity: podTerms.nullish(), podAntiAffinity: podTerms.nullish() }).nullish(),
  containers: z.array(container).nullish(),
  initContainers: z.array(container).nullish(),
});

export function readPodSpec(spec: unknown): PodFields | string {
  const parsed = podSpec.safeParse(spec);
  return parsed.success ? parsed.data : `spec: ${issues(parsed.error)}`;
}

/** Returns the pod with only the fields that hold Legation's marks. */
export function fieldsOfMarks({ metadata }: ReviewedObject, { schedulerName, tolerations }: PodFields): Pod {
  const { labels, annotations, finalizers } = metadata;
  return {
    metadata: {
      ...defined({ labels, annotations }),
      ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
    },
    spec: {
      containers: [],
      ...(schedulerName == null ? {} : { schedulerName }),
      ...(tolerations == null ? {} : { tolerations: [...tolerations] }),
    },
  };
}

export function isVirtualNode(nodeName: string): boolean {
  return nodeName.startsWith(VIRTUAL_NODE_PREFIX);
}

/** Returns why a pod with this node cannot be delegated. */
export function nodeNameProblem(nodeName: string): string | undefined {
  if (nodeName === "") return undefined;
  const cluster = nodeName.slice(VIRTUAL_NODE_PREFIX.length);
  return isVirtualNode(nodeName)
    ? `spec.nodeName: ${JSON.stringify(nodeName)} is a virtual node, which only Legation assigns; ` +
        `remove it and write the annotation ${CLUSTERS_ANNOTATION}: ${JSON.stringify(cluster)}`
    : `spec.nodeName: ${JSON.stringify(nodeName)} is a node of this cluster, so the pod cannot be delegated; ` +
        `remove it, or write the annotation ${DELEGATE_ANNOTATION}: "false"`;
}

/** Returns warnings for fields that use the member's node, or that no member can honor. */
export function specWarnings(spec: PodFields): string[] {
  const { nodeSelector, hostNetwork, volumes, affinity, containers, initContainers } = spec;
  const warnings = selectorWarnings(nodeSelector ?? {});
  const all = [...(containers ?? []), ...(initContainers ?? [])];
  if (hostNetwork === true) warnings.push("spec.hostNetwork: uses the member node's network");
  // A pod with hostNetwork has a host port for every port.
  else if (all.some(({ ports }) => ports?.some(({ hostPort }) => hostPort !== 0 && hostPort != null) === true)) {
    warnings.push("hostPort: uses the member node's ports");
  }
  for (const { name, hostPath } of volumes ?? []) {
    if (hostPath != null) warnings.push(`spec.volumes: ${name ?? ""}: hostPath uses the member node's file system`);
  }
  return [...warnings, ...podTermWarnings(affinity)];
}

/** Warns of selectors for other projects' virtual nodes: the member's nodes mostly lack those labels. */
function selectorWarnings(selector: Readonly<Record<string, unknown>>): string[] {
  const isAnswered = (key: string): boolean =>
    selector.type === VIRTUAL_NODE_KIND.type && Object.hasOwn(OTHER_ROLES, key);
  return Object.entries(selector)
    .filter(([key, value]) => OTHER_VIRTUAL_NODES.some(([known, of]) => known === key && (of ?? value) === value))
    .filter(([key]) => !isAnswered(key))
    .map(
      ([key, value]) =>
        `spec.nodeSelector: ${key}: ${JSON.stringify(value)} is asked of the members' own nodes; leave it out to choose any ` +
        `member, or write the annotation ${CLUSTERS_ANNOTATION}`,
    );
}

/** Labels of the manifests of Virtual Kubelet, Admiralty and Liqo. */
const OTHER_VIRTUAL_NODES: readonly (readonly [key: string, value?: string])[] = [
  ["kubernetes.io/role", "agent"],
  ["node-role.kubernetes.io/agent"],
  ["virtual-kubelet.io/provider"],
  ["liqo.io/type"],
];

/** Warns of pod affinity over virtual nodes: the member's nodes lack that label. */
function podTermWarnings(affinity: PodFields["affinity"]): string[] {
  const warnings: string[] = [];
  const { podAffinity, podAntiAffinity } = affinity ?? {};
  if (isAboutVirtualNodes(podAffinity)) {
    warnings.push(
      `spec.affinity.podAffinity: no node of a member has ${VIRTUAL_NODE_LABEL}; ` +
        `write the annotation ${GROUP_ANNOTATION} on pods that belong in one cluster`,
    );
  }
  if (isAboutVirtualNodes(podAntiAffinity)) {
    warnings.push(
      `spec.affinity.podAntiAffinity: topologyKey ${VIRTUAL_NODE_LABEL} has no effect; ` +
        "write topologySpreadConstraints with that key",
    );
  }
  return warnings;
}

function isAboutVirtualNodes(terms: PodTerms | null | undefined): boolean {
  const required = terms?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const preferred = terms?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const all = [...required, ...preferred.map(({ podAffinityTerm }) => podAffinityTerm)];
  return all.some((term) => term?.topologyKey === VIRTUAL_NODE_LABEL);
}

/** Warns of ephemeral volumes, for which the host makes claims, too. */
export function ephemeralWarnings({ volumes }: PodFields): string[] {
  const made = (volumes ?? []).filter(({ ephemeral }) => ephemeral != null);
  return made.map(
    ({ name }) =>
      `spec.volumes: ${name ?? ""}: ephemeral: this cluster makes a claim for it, too; name a StorageClass with ` +
      "volumeBindingMode: WaitForFirstConsumer, or there is a volume here that no pod uses",
  );
}
