import fastJsonPatch from "fast-json-patch";
import { asksForDelegation, type Placement, parsePlacement } from "../src/api/annotations.ts";
import { HOST_LABEL, VIRTUAL_NODE_PREFIX } from "../src/api/keys.ts";
import type { Pod } from "../src/api/kubernetes.ts";
import { isProxy, toProxy } from "../src/pods/proxy.ts";
import type { AdmissionRequest, ReviewedObject } from "./admission-review.ts";
import { allowed, denied, patched, type Verdict } from "./responses.ts";

/** What a namespace's label says: pods that ask are delegated, or every pod is. */
export type DelegationMode = "annotated" | "all";

// Static pods' mirrors exist on one node only, as do a DaemonSet's pods: a virtual node is no node to them.
const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

/** Turns a pod that is to be delegated into a proxy, by the smallest patch; refuses what cannot be delegated. */
export function mutatePod({ object, operation }: AdmissionRequest, mode: DelegationMode): Verdict {
  if (object === undefined || operation !== "CREATE") return allowed();
  const { labels, annotations = {}, ownerReferences = [] } = object.metadata;
  if (labels?.[HOST_LABEL] !== undefined || annotations[MIRROR_ANNOTATION] !== undefined) return allowed();
  if (ownerReferences.some(({ kind, controller }) => kind === "DaemonSet" && controller === true)) return allowed();

  const parsed = parsePlacement(annotations);
  if (!parsed.ok) return denied(parsed.problems.map(({ message }) => `metadata.annotations: ${message}`));
  const { placement } = parsed;
  const wanted = mode === "all" ? placement.delegate !== false : asksForDelegation(placement);
  const warnings = placementWarnings(placement);
  if (!wanted) return allowed(warnings);

  const spec = record(object.spec);
  const { nodeName } = spec;
  if (typeof nodeName === "string" && nodeName !== "") return denied([nodeNameProblem(nodeName)]);
  return patched(proxyPatch(object), [...warnings, ...specWarnings(spec)]);
}

/** The JSON patch from the pod to its proxy; empty when it is one. Only fields that `toProxy` owns are compared. */
export function proxyPatch(object: ReviewedObject): fastJsonPatch.Operation[] {
  const pod = object as Pod;
  if (isProxy(pod)) return [];
  return fastJsonPatch.compare(ownedFields(pod), ownedFields(toProxy(pod)));
}

function ownedFields({ metadata, spec }: Pod): object {
  return {
    metadata: present({
      labels: metadata?.labels,
      annotations: metadata?.annotations,
      finalizers: metadata?.finalizers,
    }),
    spec: present({ schedulerName: spec?.schedulerName }),
  };
}

function present(fields: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function nodeNameProblem(nodeName: string): string {
  return nodeName.startsWith(VIRTUAL_NODE_PREFIX)
    ? `spec.nodeName: ${JSON.stringify(nodeName)} is a virtual node, which only Legation assigns; ` +
        "remove it and write the annotation legation.dev/clusters"
    : `spec.nodeName: ${JSON.stringify(nodeName)} binds the pod to a node of the host, so it cannot be delegated; ` +
        'remove it, or write the annotation legation.dev/delegate: "false"';
}

/** What is legal but does less, or other, than it may seem. */
function placementWarnings({ delegate, clusters, selector }: Placement): string[] {
  const warnings: string[] = [];
  if (delegate === false && (clusters !== undefined || selector !== undefined)) {
    warnings.push('legation.dev/delegate: "false" makes the other legation.dev annotations void');
  }
  if (selector?.length === 0) warnings.push("legation.dev/cluster-selector is empty: it selects every cluster");
  return warnings;
}

function specWarnings(spec: Readonly<Record<string, unknown>>): string[] {
  const warnings: string[] = [];
  if (spec.hostNetwork === true) warnings.push("spec.hostNetwork: the pod uses the network of the member's node");
  const volumes = Array.isArray(spec.volumes) ? spec.volumes.map(record) : [];
  if (volumes.some(({ hostPath }) => hostPath !== undefined && hostPath !== null)) {
    warnings.push("spec.volumes: a hostPath is a path on the member's node");
  }
  return warnings;
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
