import { EXPORTED_ANNOTATION, GROUP, HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE } from "../api/keys.ts";
import type { EndpointSlice, KubeObject, Service, Stored } from "../api/kubernetes.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import { jsonEqual } from "../pods/equal.ts";
import { copyMetadata, copyMetadataPatch, setField, wantedMetadata } from "./copy.ts";

/** Kinds of which members get copies, so that names of Services lead somewhere there. */
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

/** A Service's spec, as far as it is copied. */
export type ServiceSpec = { [Field in Copied | "type" | "clusterIP"]?: Spec[Field] | undefined };

type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

/** Mutable fields of an EndpointSlice that are copied. */
interface SliceContent {
  endpoints?: Pick<Endpoint, "addresses" | "conditions" | "hostname">[] | null | undefined;
  ports?: EndpointSlice["ports"] | undefined;
}

/** A Service or an EndpointSlice, as far as one is copied. */
export interface ServiceObject extends KubeObject, SliceContent {
  spec?: ServiceSpec;
  addressType?: string;
}

const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
// KEP-1645: names the imported Service, on what an implementation makes for it.
const IMPORTED_LABEL = "multicluster.kubernetes.io/service-name";
/** Label on an EndpointSlice: who keeps it. */
export const SLICE_MANAGER_LABEL = "endpointslice.kubernetes.io/managed-by";
/** Slices that the host's own controller makes of a Service's selector; each member's makes them again. */
export const OWN_SLICES_MANAGER = "endpointslice-controller.k8s.io";

/** True when the Service's endpoints are pods that its selector matches. */
export function hasSelector({ spec }: ServiceObject): boolean {
  return spec?.type !== "ExternalName" && Object.keys(spec?.selector ?? {}).length > 0;
}

/** True when pods with these labels are endpoints of the Service. */
export function selects(service: ServiceObject, labels: Readonly<Record<string, string>>): boolean {
  return (
    hasSelector(service) && Object.entries(service.spec?.selector ?? {}).every(([key, value]) => labels[key] === value)
  );
}

/** True for what may be copied at all: every cluster has a Service of its own for its API server, and imports for itself. */
export function mayBeCopied(object: Stored<KubeObject>): boolean {
  const { namespace, name } = object.metadata;
  return !(namespace === "default" && name === "kubernetes") && !isImported(object);
}

/** True for a Service, or a slice, that an implementation of the Multi-Cluster Services API has made of other clusters'. */
function isImported({ metadata: { labels = {}, ownerReferences = [] } }: Stored<KubeObject>): boolean {
  return labels[IMPORTED_LABEL] !== undefined || ownerReferences.some(({ kind }) => kind === "ServiceImport");
}

/** Name of the Service that a slice holds endpoints of. */
export function serviceOfSlice({ metadata }: KubeObject): string {
  return metadata?.labels?.[SERVICE_NAME_LABEL] ?? "";
}

/** Returns the immutable kind of an object: `Headless`, `ClusterIP` or `ExternalName`; a slice's address type. */
export function shapeOf(kind: ServiceKind, { spec, addressType = "" }: ServiceObject): string {
  if (kind === "EndpointSlice") return addressType;
  if (spec?.type === "ExternalName") return "ExternalName";
  return spec?.clusterIP === "None" ? "Headless" : "ClusterIP";
}

/** The object to create in a member for one of the host. */
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

/** True when the copy says what its source says. Fields that the member's API server fills in do not count. */
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

/** JSON patch that makes a copy like its source. It sets whole fields, and is refused for a copy that has changed since. */
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

/** True when a member refuses a Service for how its traffic is distributed: each version of Kubernetes knows other values. */
export function refusesTrafficDistribution(detail: string): boolean {
  return /\bspec\.trafficDistribution: /.test(detail);
}

/** The Service to create where its way to distribute traffic is not known. */
export function withoutTrafficDistribution({ spec, ...rest }: ServiceObject): ServiceObject {
  const { trafficDistribution: _, ...known } = spec ?? {};
  return { ...rest, spec: known };
}

/** The same of a patch. */
export function patchWithoutTrafficDistribution(patch: readonly object[]): object[] {
  return [...patch, setField("/spec/trafficDistribution", null)];
}

/** The ServiceExport beside a copy, in the member's version of that API: it goes with the copy, which owns it. */
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

/** True when a ServiceExport was made beside the copy, or is about to be. */
export function isExported({ metadata }: KubeObject): boolean {
  return metadata?.annotations?.[EXPORTED_ANNOTATION] !== undefined;
}

/** Returns the copied fields. Addresses, node ports and load balancers belong to each cluster; ingress traffic enters the host. */
function contentOf(kind: ServiceKind, object: ServiceObject): ServiceSpec | SliceContent {
  return kind === "Service" ? serviceContent(object.spec ?? {}) : sliceContent(object);
}

/** The same of a source, as its copy is to have it. */
function wantedContent(kind: ServiceKind, source: ServiceObject, host: HostIdentity): ServiceSpec | SliceContent {
  return kind === "Service" ? serviceContent(inMember(source.spec ?? {}, host)) : sliceContent(source);
}

/**
 * The spec with a selector that matches delegates where the host's matches their proxies. `kubectl expose pod` takes all labels of a
 * pod as the selector, the mark of proxies among them, which no delegate has: what it has in its place is its host.
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

/** Nodes, zones and objects that endpoints name are the host's. */
function sliceContent({ endpoints, ports }: ServiceObject): SliceContent {
  const copied = (endpoints ?? []).map(({ addresses, conditions, hostname }) => ({
    addresses,
    ...(conditions === undefined ? {} : { conditions }),
    ...(hostname === undefined ? {} : { hostname }),
  }));
  return { endpoints: copied, ports };
}

/** A slice's copy is kept by nobody but Legation. */
function marked(kind: ServiceKind, source: Stored<KubeObject>): Stored<KubeObject> {
  if (kind === "Service") return source;
  const labels = { ...source.metadata.labels, [SLICE_MANAGER_LABEL]: GROUP };
  return { ...source, metadata: { ...source.metadata, labels } };
}
