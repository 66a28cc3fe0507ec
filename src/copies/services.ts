import { jsonEqual } from "../api/json.ts";
import { EXPORTED_ANNOTATION, GROUP, HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { EndpointSlice, KubeObject, Service, Stored } from "../api/kubernetes.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { copyMetadata, copyMetadataPatch, setField, wantedMetadata } from "./copy.ts";

/** Kinds that are copied for the names of Services. */
export type ServiceKind = "Service" | "EndpointSlice";

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

/** The copied part of a Service's spec. */
export type ServiceSpec = { [Field in Copied | "type" | "clusterIP"]?: Spec[Field] | undefined };

type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

/** Mutable fields of an EndpointSlice that are copied. */
interface SliceContent {
  endpoints?: Pick<Endpoint, "addresses" | "conditions" | "hostname">[] | null | undefined;
  ports?: EndpointSlice["ports"] | undefined;
}

/** A Service or an EndpointSlice, as far as it is copied. */
export interface ServiceObject extends KubeObject, SliceContent {
  spec?: ServiceSpec;
  addressType?: string;
}

const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
// KEP-1645: names the imported Service on an implementation's objects.
const IMPORTED_LABEL = "multicluster.kubernetes.io/service-name";
/** Label on an EndpointSlice: its manager. */
export const SLICE_MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by";
/** Manager of slices made from a selector; each member's controller makes its own. */
export const OWN_SLICES_MANAGER = "endpointslice-controller.k8s.io";

export function hasSelector({ spec }: ServiceObject): boolean {
  return spec?.type !== "ExternalName" && Object.keys(spec?.selector ?? {}).length > 0;
}

export function selects(service: ServiceObject, labels: Readonly<Record<string, string>>): boolean {
  return (
    hasSelector(service) && Object.entries(service.spec?.selector ?? {}).every(([key, value]) => labels[key] === value)
  );
}

/** Reports whether the object may be copied: not the API server's Service, and no imports. */
export function mayBeCopied(object: Stored<KubeObject>): boolean {
  const { namespace, name } = object.metadata;
  return !(namespace === "default" && name === "kubernetes") && !isImported(object);
}

/** Reports whether an implementation of the Multi-Cluster Services API imported the object. */
function isImported({ metadata: { labels = {}, ownerReferences = [] } }: Stored<KubeObject>): boolean {
  return labels[IMPORTED_LABEL] !== undefined || ownerReferences.some(({ kind }) => kind === "ServiceImport");
}

export function serviceOfSlice({ metadata }: KubeObject): string {
  return metadata?.labels?.[SERVICE_NAME_LABEL] ?? "";
}

/** Returns the immutable type: `Headless`, `ClusterIP` or `ExternalName`; a slice's address type. */
export function shapeOf(kind: ServiceKind, { spec, addressType = "" }: ServiceObject): string {
  if (kind === "EndpointSlice") return addressType;
  if (spec?.type === "ExternalName") return "ExternalName";
  return spec?.clusterIP === "None" ? "Headless" : "ClusterIP";
}

export function toServiceCopy(kind: ServiceKind, source: Stored<ServiceObject>, host: HostIdentity): ServiceObject {
  const { name, namespace = "" } = source.metadata;
  const metadata = { name, namespace, ...copyMetadata(marked(kind, source), host) };
  if (kind === "EndpointSlice") {
    const { addressType = "IPv4" } = source;
    return { apiVersion: "discovery.k8s.io/v1", kind, metadata, addressType, ...sliceContent(source) };
  }
  const shape = shapeOf(kind, source);
  const spec: ServiceSpec = {
    type: shape === "ExternalName" ? shape : "ClusterIP",
    clusterIP: shape === "Headless" ? "None" : undefined,
    ...serviceContent(inMember(source.spec ?? {}, host)),
  };
  return { apiVersion: "v1", kind, metadata, spec };
}

/** Reports whether the copy equals its source. Fields that the member's API server fills in do not count. */
export function isLike(
  kind: ServiceKind,
  copy: Stored<ServiceObject>,
  source: Stored<ServiceObject>,
  host: HostIdentity,
): boolean {
  return (
    jsonEqual(contentOf(kind, copy), wantedContent(kind, source, host)) &&
    wantedMetadata(copy, marked(kind, source), host) === undefined
  );
}

/** Returns the JSON patch of a copy, with uid and resourceVersion as preconditions. It sets whole fields. */
export function serviceCopyPatch(
  kind: ServiceKind,
  copy: Stored<ServiceObject>,
  source: Stored<ServiceObject>,
  host: HostIdentity,
): object[] {
  const content: Record<string, unknown> = { ...wantedContent(kind, source, host) };
  const there: Record<string, unknown> = { ...contentOf(kind, copy) };
  const fields = Object.keys({ ...there, ...content }).filter((field) => !jsonEqual(there[field], content[field]));
  return [
    ...copyMetadataPatch(copy, marked(kind, source), host),
    ...fields.map((field) => setField(kind === "Service" ? `/spec/${field}` : `/${field}`, content[field] ?? null)),
  ];
}

/** Reports whether a member refused a Service's trafficDistribution: versions of Kubernetes know different values. */
export function refusesTrafficDistribution(detail: string): boolean {
  return /\bspec\.trafficDistribution: /.test(detail);
}

/** Returns the Service without trafficDistribution. */
export function withoutTrafficDistribution({ spec, ...rest }: ServiceObject): ServiceObject {
  const { trafficDistribution: _, ...known } = spec ?? {};
  return { ...rest, spec: known };
}

/** Returns the patch without trafficDistribution. */
export function patchWithoutTrafficDistribution(patch: readonly object[]): object[] {
  return [...patch, setField("/spec/trafficDistribution", null)];
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
    metadata: { name, namespace, ...copyMetadata(source, host), ownerReferences: [owner] },
  };
}

/** Reports whether the copy's ServiceExport was, or is about to be, created. */
export function isExported({ metadata }: KubeObject): boolean {
  return metadata?.annotations?.[EXPORTED_ANNOTATION] !== undefined;
}

/** Returns the copied fields. Addresses, node ports and load balancers are each cluster's own. */
function contentOf(kind: ServiceKind, object: ServiceObject): ServiceSpec | SliceContent {
  return kind === "Service" ? serviceContent(object.spec ?? {}) : sliceContent(object);
}

function wantedContent(kind: ServiceKind, source: ServiceObject, host: HostIdentity): ServiceSpec | SliceContent {
  return kind === "Service" ? serviceContent(inMember(source.spec ?? {}, host)) : sliceContent(source);
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

/** Removes names of the host's nodes, zones and objects. */
function sliceContent({ endpoints, ports }: ServiceObject): SliceContent {
  const copied = (endpoints ?? []).map(({ addresses, conditions, hostname }) => ({
    addresses,
    ...(conditions === undefined ? {} : { conditions }),
    ...(hostname === undefined ? {} : { hostname }),
  }));
  return { endpoints: copied, ports };
}

/** Labels the slice with Legation as its manager. */
function marked(kind: ServiceKind, source: Stored<KubeObject>): Stored<KubeObject> {
  if (kind === "Service") return source;
  const labels = { ...source.metadata.labels, [SLICE_MANAGER_LABEL]: GROUP };
  return { ...source, metadata: { ...source.metadata, labels } };
}
