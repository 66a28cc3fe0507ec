import { defined } from "../api/defined.ts";
import { EXPORTED_ANNOTATION, GROUP, HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { EndpointSlice, KubeObject, Service, Stored } from "../api/kubernetes.ts";
import { RELAY_SLICE_MANAGER } from "../api/relay.ts";
import { addressChange, addressKindOf, mayBeCopied } from "../api/service-fields.ts";
import { endpointSlices, serviceExports, services } from "../kube/resources.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { copyMetadata, setField } from "./copy-metadata.ts";
import type { CopiedKind } from "./kind.ts";

type Spec = NonNullable<Service["spec"]>;
type Copied =
  | "selector"
  | "ports"
  | "externalName"
  | "sessionAffinity"
  | "sessionAffinityConfig"
  | "publishNotReadyAddresses"
  | "internalTrafficPolicy"
  | "trafficDistribution";

/** The copied part of a Service's spec. Copies of whole Services, which may become pods', have `loadBalancerSourceRanges`, too. */
export type ServiceSpec = {
  [Field in Copied | "loadBalancerSourceRanges" | "type" | "clusterIP" | "ipFamilyPolicy" | "ipFamilies"]?:
    | Spec[Field]
    | undefined;
};

type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

/** Mutable fields of an EndpointSlice that are copied. */
interface SliceContent {
  endpoints?:
    | Pick<Endpoint, "addresses" | "conditions" | "hostname" | "nodeName" | "zone" | "hints">[]
    | null
    | undefined;
  ports?: EndpointSlice["ports"] | undefined;
}

/** A Service or an EndpointSlice, as far as it is copied. */
export interface ServiceObject extends KubeObject, SliceContent {
  spec?: ServiceSpec;
  addressType?: string;
}

/** Label: the Service of an EndpointSlice. */
export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
/** Label: the controller that made an EndpointSlice. */
export const SLICE_MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by";
const OWN_SLICES_MANAGER = "endpointslice-controller.k8s.io";
const SKIP_MIRROR_LABEL = "endpointslice.kubernetes.io/skip-mirror";

export function hasSelector({ spec }: ServiceObject): boolean {
  return spec?.type !== "ExternalName" && Object.keys(spec?.selector ?? {}).length > 0;
}

export function selects(service: ServiceObject, labels: Readonly<Record<string, string>>): boolean {
  return (
    hasSelector(service) && Object.entries(service.spec?.selector ?? {}).every(([key, value]) => labels[key] === value)
  );
}

export function serviceOfSlice({ metadata }: KubeObject): string {
  return metadata?.labels?.[SERVICE_NAME_LABEL] ?? "";
}

/** Reports whether the host's own controller made the slice, for a Service with a selector. */
export function isOfSelector({ metadata }: KubeObject): boolean {
  return metadata?.labels?.[SLICE_MANAGER_LABEL] === OWN_SLICES_MANAGER;
}

/** Reports whether the slice leads to the host's relay. */
export function isOfRelay({ metadata }: KubeObject): boolean {
  return metadata?.labels?.[SLICE_MANAGER_LABEL] === RELAY_SLICE_MANAGER;
}

/**
 * Labels the copy so that its Endpoints, which get its labels, are never mirrored. Those of a selector that was removed since
 * stay in each cluster, and the copied slices already have what the host's mirroring made of them.
 */
export function withoutMirror<T extends Stored<KubeObject>>(source: T): T {
  return withLabel(source, SKIP_MIRROR_LABEL, "true");
}

/** Services. Addresses, node ports and load balancers belong to each cluster; ingress traffic enters the host. */
const service: CopiedKind<ServiceObject> = {
  resource: services,
  body: (source, host) => {
    const spec: ServiceSpec = {
      type: typeOf(source),
      clusterIP: addressKindOf(source) === "Headless" ? "None" : undefined,
      ipFamilyPolicy: isDualStack(source) ? PREFERS_BOTH : undefined,
      // The API server refuses another first family later, so an existing copy keeps its own.
      ipFamilies: source.spec?.ipFamilies,
      ...serviceContent(inMember(source.spec ?? {}, host)),
    };
    return { spec };
  },
  content: (object) => {
    const { spec = {} } = object;
    const { type = "ClusterIP", loadBalancerSourceRanges } = spec;
    const ipFamilyPolicy = isDualStack(object) ? PREFERS_BOTH : "SingleStack";
    const content = { ...serviceContent(spec), type, loadBalancerSourceRanges, ipFamilyPolicy };
    return Object.fromEntries(Object.entries(content).map(([field, value]) => [`/spec/${field}`, value]));
  },
  fixed: addressKindOf,
  carried: withoutMirror,
  isCopied: mayBeCopied,
  remade: addressChange,
  fallback: (refusedFields) => {
    const field = LEFT_OUT.find((each) => refusedFields.some((refused) => refused.startsWith(`spec.${each}`)));
    return field && { object: without(field), patch: [setField(`/spec/${field}`, null)] };
  },
};

/** EndpointSlices. Nodes, zones and objects that endpoints name are the host's. */
const endpointSlice: CopiedKind<ServiceObject> = {
  resource: endpointSlices,
  body: (source) => ({ addressType: source.addressType ?? "IPv4", ...sliceContent(withHintsForMember(source)) }),
  content: (slice) => {
    const { endpoints, ports } = sliceContent(slice);
    return { "/endpoints": endpoints, "/ports": ports };
  },
  fixed: ({ addressType = "" }) => addressType,
  carried: (source) => withLabel(source, SLICE_MANAGER_LABEL, GROUP),
  isCopied: mayBeCopied,
  // The member's controller carries a copy's labels over to the slices that it makes itself.
  copies: { labelSelector: `${SLICE_MANAGER_LABEL}=${GROUP}` },
  // The host's controller makes one for every Service with a selector, and so does each member's.
  sources: { labelSelector: `${SLICE_MANAGER_LABEL}!=${OWN_SLICES_MANAGER}` },
};

/** Kinds by which names of Services lead somewhere in members. */
export const SERVICES: Readonly<Record<"Service" | "EndpointSlice", CopiedKind<ServiceObject>>> = {
  Service: service,
  EndpointSlice: endpointSlice,
};

function withLabel<T extends Stored<KubeObject>>(source: T, key: string, value: string): T {
  return { ...source, metadata: { ...source.metadata, labels: { ...source.metadata.labels, [key]: value } } };
}

// Each version of Kubernetes knows other traffic distributions, and a cluster may lack a family.
const LEFT_OUT = ["trafficDistribution", "ipFamilies"] as const;

// A member has both families, or one.
const PREFERS_BOTH = "PreferDualStack";

/** Reports whether the Service has addresses of both families where its cluster has both. */
function isDualStack({ spec }: ServiceObject): boolean {
  return spec?.ipFamilyPolicy === PREFERS_BOTH || spec?.ipFamilyPolicy === "RequireDualStack";
}

function typeOf(source: ServiceObject): "ExternalName" | "ClusterIP" {
  return addressKindOf(source) === "ExternalName" ? "ExternalName" : "ClusterIP";
}

function without(field: keyof ServiceSpec): (service: ServiceObject) => ServiceObject {
  return ({ spec, ...rest }) => ({ ...rest, spec: { ...spec, [field]: undefined } });
}

/** Returns the ServiceExport of a copy, which owns it, in the member's API version. */
export function toExport(
  copy: Stored<KubeObject>,
  source: Stored<KubeObject>,
  host: HostIdentity,
  apiVersion: string,
): KubeObject {
  const { name, uid, namespace = "" } = copy.metadata;
  const owner = { apiVersion: "v1", kind: "Service", name, uid };
  return {
    apiVersion,
    kind: "ServiceExport",
    metadata: { name, namespace, ...copyMetadata({ source, host, type: serviceExports }), ownerReferences: [owner] },
  };
}

/** Reports whether the copy's ServiceExport was, or is about to be, created. */
export function isExported({ metadata }: KubeObject): boolean {
  return metadata?.annotations?.[EXPORTED_ANNOTATION] !== undefined;
}

/**
 * Replaces the proxy label in the selector by the host label: `kubectl expose pod` selects all labels of a proxy, and
 * delegates lack that one.
 */
function inMember(spec: ServiceSpec, host: HostIdentity): ServiceSpec {
  if (spec.selector?.[PROXY_LABEL] !== PROXY_LABEL_VALUE) return spec;
  const { [PROXY_LABEL]: _, ...selector } = spec.selector;
  return { ...spec, selector: { ...selector, [HOST_LABEL]: host.id } };
}

function serviceContent(spec: ServiceSpec): Pick<ServiceSpec, Copied> {
  const { selector, externalName, sessionAffinity, sessionAffinityConfig, publishNotReadyAddresses } = spec;
  const { internalTrafficPolicy, trafficDistribution } = spec;
  return {
    selector,
    ports: spec.ports?.map(({ nodePort: _, ...port }) => port),
    externalName,
    sessionAffinity,
    sessionAffinityConfig,
    publishNotReadyAddresses,
    internalTrafficPolicy,
    trafficDistribution,
  };
}

/** Returns the slice without hints if they name zones and nodes of the host. Those of joined slices are made for the member. */
function withHintsForMember(slice: ServiceObject): ServiceObject {
  if (isOfSelector(slice)) return slice;
  return { ...slice, endpoints: slice.endpoints?.map(({ hints: _, ...endpoint }) => endpoint) };
}

function sliceContent({ endpoints, ports }: ServiceObject): SliceContent {
  const copied = (endpoints ?? []).map(({ addresses, conditions, hostname, hints }) => ({
    addresses,
    ...defined({ conditions, hostname, hints }),
  }));
  return { endpoints: copied, ports };
}
