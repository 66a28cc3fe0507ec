import type { DelegatedType } from "./delegated-type.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { WHOLE_MANAGED_BY } from "./keys.ts";

/** `spec.loadBalancerClass` of a whole Service on the host: no load balancer there serves it. Copies lack it. */
export const WHOLE_LOAD_BALANCER_CLASS: string = WHOLE_MANAGED_BY;

/** Label of KEP-1645: names the imported Service, on what an implementation makes for it. */
export const IMPORTED_LABEL = "multicluster.kubernetes.io/service-name";

/** Metadata by which an object of one cluster alone is known. */
interface Identified {
  readonly metadata: {
    readonly namespace?: string | undefined;
    readonly name?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly ownerReferences?: readonly { readonly kind: string }[] | undefined;
  };
}

/** Reports whether the object may be copied: each cluster has its own `kubernetes` Service, and its own imports. */
export function mayBeCopied({ metadata }: Identified): boolean {
  const { namespace, name, labels = {}, ownerReferences = [] } = metadata;
  const isImported =
    labels[IMPORTED_LABEL] !== undefined || ownerReferences.some(({ kind }) => kind === "ServiceImport");
  return !(namespace === "default" && name === "kubernetes") && !isImported;
}

type AnyService = { readonly spec?: unknown } | JsonObject;

export function isOfServices({ metadata }: Pick<DelegatedType, "metadata">): boolean {
  return metadata.name === "services";
}

export function specOf({ spec }: AnyService): JsonObject {
  return isJsonObject(spec) ? spec : {};
}

/** Returns the kind of address that a Service has, which changes only by giving the address up. */
export function addressKindOf(service: AnyService): "ExternalName" | "Headless" | "ClusterIP" {
  const { type, clusterIP } = specOf(service);
  if (type === "ExternalName") return "ExternalName";
  return clusterIP === "None" ? "Headless" : "ClusterIP";
}

/** Returns what users of a Service notice that was deleted and made again. */
export function addressChange(before: AnyService, after: AnyService): string | undefined {
  const [was, is] = [specOf(before).clusterIP, specOf(after).clusterIP];
  if (typeof was !== "string" || typeof is !== "string" || was === is) return undefined;
  return `its cluster IP there is ${is} now, and was ${was}, which running pods may still use (in a variable *_SERVICE_HOST, say)`;
}

export function hasNodePorts(type: unknown): boolean {
  return type === "NodePort" || type === "LoadBalancer";
}

/**
 * Returns the Service without what its cluster's API server allocated, which each cluster allocates for itself, and without
 * Legation's load balancer class. `clusterIP: None` is the author's.
 */
export function withoutAllocated<T extends AnyService>(service: T): T {
  if (!isJsonObject(service.spec)) return service;
  const {
    clusterIP,
    clusterIPs: _,
    ipFamilies: __,
    healthCheckNodePort: ___,
    loadBalancerClass,
    ports,
    ...rest
  } = service.spec;
  const spec = {
    ...rest,
    ...(clusterIP === "None" ? { clusterIP } : {}),
    ...(loadBalancerClass === undefined || loadBalancerClass === WHOLE_LOAD_BALANCER_CLASS
      ? {}
      : { loadBalancerClass }),
    ...(Array.isArray(ports) ? { ports: ports.map(withoutNodePort) } : {}),
  };
  return { ...service, spec };
}

function withoutNodePort(port: unknown): unknown {
  if (!isJsonObject(port)) return port;
  const { nodePort: _, ...rest } = port;
  return rest;
}

/**
 * Returns the spec without fields that the API server sets for some types, and refuses for this one, and without
 * `externalIPs`: by these a Service takes traffic of other namespaces (CVE-2020-8554).
 */
export function specOfType(spec: JsonObject): JsonObject {
  const {
    externalIPs: _,
    externalTrafficPolicy,
    allocateLoadBalancerNodePorts,
    loadBalancerClass,
    ipFamilyPolicy,
    ...rest
  } = spec;
  const { type } = rest;
  const fields = {
    ...(hasNodePorts(type) ? { externalTrafficPolicy } : {}),
    ...(type === "LoadBalancer" ? { allocateLoadBalancerNodePorts, loadBalancerClass } : {}),
    ...(type === "ExternalName" ? {} : { ipFamilyPolicy }),
  };
  return { ...rest, ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) };
}
