import { z } from "zod";
import { isJsonObject } from "../src/api/json-object.ts";
import {
  CLUSTERS_ANNOTATION,
  DELEGATE_ANNOTATION,
  GROUP_ANNOTATION,
  VIRTUAL_NODE_LABEL,
  VIRTUAL_NODE_PREFIX,
} from "../src/api/keys.ts";
import type { Pod, Toleration } from "../src/api/kubernetes.ts";
import { OTHER_ROLES, VIRTUAL_NODE_KIND } from "../src/api/virtual-node-labels.ts";
import { issues, type ReviewedObject } from "./admission-review.ts";

interface PodTermFields {
  readonly topologyKey?: string | null | undefined;
}

interface PodTermsFields {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodTermFields[] | null | undefined;
  readonly preferredDuringSchedulingIgnoredDuringExecution?:
    | readonly { readonly podAffinityTerm?: PodTermFields | null | undefined }[]
    | null
    | undefined;
}

interface AffinityFields {
  readonly podAffinity?: PodTermsFields | null | undefined;
  readonly podAntiAffinity?: PodTermsFields | null | undefined;
}

interface ContainerFields {
  readonly ports?: readonly { readonly hostPort?: number | null | undefined }[] | null | undefined;
}

/** The fields of a pod's spec that admission reads. All others are the API server's business. */
export interface PodFields {
  readonly schedulerName?: string | null | undefined;
  readonly nodeName?: string | null | undefined;
  readonly nodeSelector?: Readonly<Record<string, unknown>> | null | undefined;
  readonly hostNetwork?: boolean | null | undefined;
  readonly volumes?:
    | readonly {
        readonly name?: string | null | undefined;
        readonly hostPath?: unknown;
        readonly persistentVolumeClaim?: unknown;
        readonly ephemeral?: unknown;
      }[]
    | null
    | undefined;
  readonly resourceClaims?: readonly { readonly name?: string | null | undefined }[] | null | undefined;
  readonly tolerations?: readonly Toleration[] | null | undefined;
  readonly affinity?: AffinityFields | null | undefined;
  readonly containers?: readonly ContainerFields[] | null | undefined;
  readonly initContainers?: readonly ContainerFields[] | null | undefined;
}

const container: z.ZodType<ContainerFields> = z.object({
  ports: z.array(z.object({ hostPort: z.number().nullish() })).nullish(),
});

const podTerm: z.ZodType<PodTermFields> = z.object({ topologyKey: z.string().nullish() });
const podTerms: z.ZodType<PodTermsFields> = z.object({
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
        hostPath: z.unknown().optional(),
        persistentVolumeClaim: z.unknown().optional(),
        ephemeral: z.unknown().optional(),
      }),
    )
    .nullish(),
  resourceClaims: z.array(z.object({ name: z.string().nullish() })).nullish(),
  // As they are: they go back into the patch.
  tolerations: z.array(z.custom<Toleration>((value) => isJsonObject(value))).nullish(),
  affinity: z.object({ podAffinity: podTerms.nullish(), podAntiAffinity: podTerms.nullish() }).nullish(),
  containers: z.array(container).nullish(),
  initContainers: z.array(container).nullish(),
});

/** The fields, or what is wrong with them. */
export function readPodSpec(spec: unknown): PodFields | string {
  const parsed = podSpec.safeParse(spec);
  return parsed.success ? parsed.data : `spec: ${issues(parsed.error)}`;
}

/** Returns the pod with the fields that hold Legation's marks, and no others. */
export function fieldsOfMarks({ metadata }: ReviewedObject, { schedulerName, tolerations }: PodFields): Pod {
  const { labels, annotations, finalizers } = metadata;
  return {
    metadata: {
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
    },
    spec: {
      containers: [],
      ...(schedulerName == null ? {} : { schedulerName }),
      ...(tolerations == null ? {} : { tolerations: [...tolerations] }),
    },
  };
}

/** True for the name of a virtual node. */
export function isVirtualNode(nodeName: string): boolean {
  return nodeName.startsWith(VIRTUAL_NODE_PREFIX);
}

/** Why a pod with this node cannot be delegated; undefined when it can. */
export function nodeNameProblem(nodeName: string): string | undefined {
  if (nodeName === "") return undefined;
  const cluster = nodeName.slice(VIRTUAL_NODE_PREFIX.length);
  return isVirtualNode(nodeName)
    ? `spec.nodeName: ${JSON.stringify(nodeName)} is a virtual node, which only Legation assigns; ` +
        `remove it and write the annotation ${CLUSTERS_ANNOTATION}: ${JSON.stringify(cluster)}`
    : `spec.nodeName: ${JSON.stringify(nodeName)} is a node of this cluster, so the pod cannot be delegated; ` +
        `remove it, or write the annotation ${DELEGATE_ANNOTATION}: "false"`;
}

/** What a delegated pod takes from the machine it runs on, which is another one than it may seem, and what no member can heed. */
export function specWarnings(spec: PodFields): string[] {
  const { nodeSelector, hostNetwork, volumes, affinity, containers, initContainers } = spec;
  const warnings = selectorWarnings(nodeSelector ?? {});
  const all = [...(containers ?? []), ...(initContainers ?? [])];
  if (hostNetwork === true) warnings.push("spec.hostNetwork: uses the member node's network");
  // With hostNetwork every port is a host port, by defaulting.
  else if (all.some(({ ports }) => ports?.some(({ hostPort }) => hostPort !== 0 && hostPort != null) === true)) {
    warnings.push("hostPort: uses the member node's ports");
  }
  for (const { name, hostPath } of volumes ?? []) {
    if (hostPath != null) warnings.push(`spec.volumes: ${name ?? ""}: hostPath uses the member node's file system`);
  }
  return [...warnings, ...podTermWarnings(affinity)];
}

/** Selectors by which manifests find other projects' virtual nodes: a member's own nodes may have them, and mostly do not. */
function selectorWarnings(selector: Readonly<Record<string, unknown>>): string[] {
  const isAnswered = (key: string): boolean => selector.type === VIRTUAL_NODE_KIND.type && key in OTHER_ROLES;
  return Object.entries(selector)
    .filter(([key, value]) => OTHER_VIRTUAL_NODES.some(([known, of]) => known === key && (of ?? value) === value))
    .filter(([key]) => !isAnswered(key))
    .map(
      ([key, value]) =>
        `spec.nodeSelector: ${key}: ${JSON.stringify(value)} is asked of the members' own nodes; leave it out to choose any ` +
        `member, or write the annotation ${CLUSTERS_ANNOTATION}`,
    );
}

/** Keys, some with the one value that is meant: of Virtual Kubelet's own manifests, Admiralty's and Liqo's. */
const OTHER_VIRTUAL_NODES: readonly (readonly [key: string, value?: string])[] = [
  ["kubernetes.io/role", "agent"],
  ["node-role.kubernetes.io/agent"],
  ["virtual-kubelet.io/provider"],
  ["liqo.io/type"],
];

/** Terms about other pods on a virtual node go to the member as they are, whose nodes do not have its label. */
function podTermWarnings(affinity: AffinityFields | null | undefined): string[] {
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

function isAboutVirtualNodes(terms: PodTermsFields | null | undefined): boolean {
  const required = terms?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const preferred = terms?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const all = [...required, ...preferred.map(({ podAffinityTerm }) => podAffinityTerm)];
  return all.some((term) => term?.topologyKey === VIRTUAL_NODE_LABEL);
}

/** What a pod that is delegated from the start takes from its own cluster all the same: volumes that are made for every pod. */
export function ephemeralWarnings({ volumes }: PodFields): string[] {
  const made = (volumes ?? []).filter(({ ephemeral }) => ephemeral != null);
  return made.map(
    ({ name }) =>
      `spec.volumes: ${name ?? ""}: ephemeral: this cluster makes a claim for it, too; name a StorageClass with ` +
      "volumeBindingMode: WaitForFirstConsumer, or there is a volume here that nobody uses",
  );
}
