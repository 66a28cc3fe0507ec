import { defined } from "../api/defined.ts";
import { jsonEqual } from "../api/json.ts";
import type { ImportedPort, Service, ServiceExport, ServiceImportSpec, Stored } from "../api/kubernetes.ts";
import { addressKindOf } from "../api/service-fields.ts";
import { fingerprint } from "../pods/fingerprints.ts";

export interface ExportedService {
  /** Name of the member. Undefined: the host. */
  readonly cluster: string | undefined;
  readonly exported: Stored<ServiceExport>;
  readonly service: Stored<Service>;
}

/** Fields of an exported Service on which its clusters differ. `reason` is one of KEP-1645. */
export interface ExportConflict {
  readonly reason: string;
  readonly field: string;
}

/** Exports of one name, merged as KEP-1645 says. */
export interface MergedExports {
  readonly spec: Omit<ServiceImportSpec, "ips" | "ipFamilies">;
  /** IP families of the exports, those of the oldest first. */
  readonly ipFamilies: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly conflicts: readonly ExportConflict[];
}

type Port = NonNullable<NonNullable<Service["spec"]>["ports"]>[number];

const DERIVED_PREFIX = "clusterset-";
// A DNS label has this many characters.
const LONGEST_NAME = 63;

/**
 * Returns the name of the Service that an import stands for: one of the import's own name is the cluster's. It follows from the
 * import's, so that a rewrite rule of CoreDNS gives it a name in clusterset.local.
 */
export function derivedServiceName(name: string): string {
  const derived = `${DERIVED_PREFIX}${name}`;
  return derived.length <= LONGEST_NAME ? derived : `${DERIVED_PREFIX}${fingerprint(name)}`;
}

/** Reports whether a Service can be exported: one of type ExternalName has no endpoints. */
export function mayBeExported(service: Stored<Service>): boolean {
  return addressKindOf(service) !== "ExternalName";
}

const COMPARED: readonly (readonly [reason: string, field: string, value: (one: ExportedService) => unknown])[] = [
  ["PortConflict", "ports", ({ service }) => importedPorts(service)],
  ["TypeConflict", "type", ({ service }) => importType(service)],
  ["SessionAffinityConflict", "sessionAffinity", ({ service }) => service.spec?.sessionAffinity],
  ["SessionAffinityConfigConflict", "sessionAffinityConfig", ({ service }) => service.spec?.sessionAffinityConfig],
  ["InternalTrafficPolicyConflict", "internalTrafficPolicy", ({ service }) => service.spec?.internalTrafficPolicy],
  ["TrafficDistributionConflict", "trafficDistribution", ({ service }) => service.spec?.trafficDistribution],
  ["IPFamilyConflict", "ipFamilies", ({ service }) => service.spec?.ipFamilies?.toSorted()],
  ["LabelsConflict", "exportedLabels", ({ exported }) => exported.spec?.exportedLabels ?? {}],
  ["AnnotationsConflict", "exportedAnnotations", ({ exported }) => exported.spec?.exportedAnnotations ?? {}],
];

/** Merges the exports of one name: the oldest decides, and the others add ports. Undefined if there is none. */
export function mergeExports(exports: readonly ExportedService[]): MergedExports | undefined {
  const [oldest, ...others] = exports.toSorted(byAge);
  if (oldest === undefined) return undefined;
  const { service, exported } = oldest;
  const ports = [...importedPorts(service)];
  for (const port of others.flatMap((other) => importedPorts(other.service))) {
    if (fitsBeside(ports, port)) ports.push(port);
  }
  const { sessionAffinity, sessionAffinityConfig, internalTrafficPolicy, trafficDistribution } = service.spec ?? {};
  return {
    spec: {
      type: importType(service),
      ports,
      sessionAffinity,
      sessionAffinityConfig,
      internalTrafficPolicy,
      trafficDistribution,
    },
    ipFamilies: [...new Set([oldest, ...others].flatMap((one) => one.service.spec?.ipFamilies ?? []))],
    labels: exported.spec?.exportedLabels ?? {},
    annotations: exported.spec?.exportedAnnotations ?? {},
    conflicts: COMPARED.flatMap(([reason, field, value]) =>
      others.every((other) => jsonEqual(value(other), value(oldest))) ? [] : [{ reason, field }],
    ),
  };
}

/** Returns the exports' order of precedence. The API server's times are whole seconds, so names decide among equals. */
function byAge(one: ExportedService, other: ExportedService): number {
  const created = ({ exported }: ExportedService): string => exported.metadata.creationTimestamp ?? "";
  return created(one).localeCompare(created(other)) || (one.cluster ?? "").localeCompare(other.cluster ?? "");
}

function importType(service: Stored<Service>): ServiceImportSpec["type"] {
  return addressKindOf(service) === "Headless" ? "Headless" : "ClusterSetIP";
}

function importedPorts({ spec }: Stored<Service>): readonly ImportedPort[] {
  return (spec?.ports ?? []).map(importedPort).toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

function importedPort({ name, protocol, appProtocol, port }: Port): ImportedPort {
  return defined({ name, protocol, appProtocol, port });
}

/** Reports whether a Service may have the port, too: names and numbers are unique, and of several ports each has a name. */
function fitsBeside(ports: readonly ImportedPort[], port: ImportedPort): boolean {
  return ports.every((other) => {
    const isSameNumber = other.port === port.port && other.protocol === port.protocol;
    return nameOf(other) !== "" && nameOf(port) !== "" && nameOf(other) !== nameOf(port) && !isSameNumber;
  });
}

function nameOf({ name = "" }: { readonly name?: string }): string {
  return name;
}

/** Reports whether the import has the exported Service's port of that name: one of a conflict leads to the oldest export alone. */
export function isImportedPort(
  portName: string | undefined,
  { spec }: Stored<Service>,
  imported: Pick<ServiceImportSpec, "ports">,
): boolean {
  const own = spec?.ports?.find((port) => nameOf(port) === (portName ?? ""));
  return imported.ports.some(
    (port) =>
      own !== undefined && nameOf(port) === nameOf(own) && port.port === own.port && port.protocol === own.protocol,
  );
}
