import { defined } from "../api/defined.ts";
import { jsonEqual, jsonOrNothing } from "../api/json.ts";
import type { Namespace, Pod, PodSpec, PriorityClass, RuntimeClass, Toleration } from "../api/kubernetes.ts";

/** The host's objects from which its admission plugins complete pods. */
export interface HostAdmission {
  readonly runtimeClass: (name: string) => RuntimeClass | undefined;
  readonly priorityClass: (name: string) => PriorityClass | undefined;
  readonly namespace: (name: string) => Namespace | undefined;
}

// Namespace annotations of PodNodeSelector and PodTolerationRestriction (plugin/pkg/admission in Kubernetes).
const NODE_SELECTOR_ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector";
const TOLERATIONS_ANNOTATION = "scheduler.alpha.kubernetes.io/defaultTolerations";

/** Parts of a pod's spec that the host's admission merged into it. */
export interface Merged {
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly tolerations: readonly Toleration[];
  readonly priorityClassName?: string;
}

/** Completes a template's spec by what the host's admission takes from classes, and by requests that are limits. */
export function completedSpec(spec: PodSpec, host: Pick<HostAdmission, "runtimeClass" | "priorityClass">): PodSpec {
  const { runtimeClassName, priorityClassName, containers, initContainers } = spec;
  const overhead = runtimeClassName === undefined ? undefined : host.runtimeClass(runtimeClassName)?.overhead?.podFixed;
  const priority = priorityClassName === undefined ? undefined : host.priorityClass(priorityClassName)?.value;
  return {
    ...defined({ overhead, priority }),
    ...spec,
    containers: containers.map(withRequests),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(withRequests) }),
  };
}

/** A resource with a limit and no request is requested as much (SetDefaults_Pod in Kubernetes). */
function withRequests<T extends PodSpec["containers"][number]>(container: T): T {
  const { requests, limits } = container.resources ?? {};
  if (limits === undefined) return container;
  return { ...container, resources: { ...container.resources, requests: { ...limits, ...requests } } };
}

/** Returns what RuntimeClass, Priority, PodNodeSelector and PodTolerationRestriction may have merged into the pod. */
export function mergedInto({ metadata, spec }: Pod, host: HostAdmission): Merged | undefined {
  if (spec === undefined) return undefined;
  const { runtimeClassName, priorityClassName } = spec;
  const { annotations = {} } = host.namespace(metadata?.namespace ?? "")?.metadata ?? {};
  const scheduling = runtimeClassName === undefined ? undefined : host.runtimeClass(runtimeClassName)?.scheduling;
  const isDefault = priorityClassName !== undefined && host.priorityClass(priorityClassName)?.globalDefault === true;
  const nodeSelector = { ...selectorOf(annotations[NODE_SELECTOR_ANNOTATION]), ...scheduling?.nodeSelector };
  const tolerations = [...tolerationsOf(annotations[TOLERATIONS_ANNOTATION]), ...(scheduling?.tolerations ?? [])];
  if (!isDefault && tolerations.length === 0 && Object.keys(nodeSelector).length === 0) return undefined;
  return { nodeSelector, tolerations, ...(isDefault ? { priorityClassName } : {}) };
}

/** Returns the same object if nothing was merged. */
export function withoutMerged(spec: PodSpec, merged: Merged | undefined): PodSpec {
  if (merged === undefined) return spec;
  return withoutTolerations(withoutNodeSelector(withoutClass(spec, merged), merged), merged);
}

export function isMerged(toleration: Toleration, merged: Merged | undefined): boolean {
  return merged?.tolerations.some((one) => jsonEqual(one, toleration)) ?? false;
}

/** The member has a default class of its own, or none. */
function withoutClass(spec: PodSpec, merged: Merged): PodSpec {
  const { priorityClassName, ...rest } = spec;
  return priorityClassName !== undefined && priorityClassName === merged.priorityClassName ? rest : spec;
}

function withoutNodeSelector(spec: PodSpec, merged: Merged): PodSpec {
  const { nodeSelector, ...rest } = spec;
  if (nodeSelector === undefined) return spec;
  const entries = Object.entries(nodeSelector);
  const kept = entries.filter(([key, value]) => merged.nodeSelector[key] !== value);
  if (kept.length === entries.length) return spec;
  return kept.length === 0 ? rest : { ...rest, nodeSelector: Object.fromEntries(kept) };
}

function withoutTolerations(spec: PodSpec, merged: Merged): PodSpec {
  const { tolerations } = spec;
  const kept = tolerations?.filter((toleration) => !isMerged(toleration, merged)) ?? [];
  return kept.length === (tolerations?.length ?? 0) ? spec : { ...spec, tolerations: kept };
}

/** Parses `a=b,c=d` as labels.ConvertSelectorToLabelsMap does. */
function selectorOf(text = ""): Record<string, string> {
  const pairs = text.split(",").map((pair) => pair.split("="));
  return Object.fromEntries(
    pairs.flatMap(([key = "", value]) => (value === undefined ? [] : [[key.trim(), value.trim()]])),
  );
}

/** Parses tolerations. Unreadable text yields none: the plugin refuses the namespace's pods for it. */
function tolerationsOf(text: string | undefined): Toleration[] {
  const value = jsonOrNothing(text);
  return Array.isArray(value) ? value : [];
}
