import type { WantedCondition } from "../../../api/conditions.ts";
import { jsonEqual } from "../../../api/json.ts";
import type {
  EndpointSlice,
  KubeObject,
  Service,
  ServiceExport,
  ServiceImport,
  Stored,
} from "../../../api/kubernetes.ts";
import { conditionsToWrite } from "../../../copies/export-conditions.ts";
import {
  type ImportObject,
  importPatch,
  isOfAnotherType,
  SOURCE_CLUSTER_LABEL,
} from "../../../copies/import-objects.ts";
import { type Decision, lookAgain } from "../../../runtime/requeue.ts";

/** The objects of an import that a cluster is to have. Objects that need an owner come once that is there. */
export interface WantedImport {
  readonly import: ImportObject;
  readonly service: ImportObject | undefined;
  readonly slices: readonly ImportObject[];
  /** Names of the exporting clusters. */
  readonly clusters: readonly string[];
}

/** An import in one cluster, and that cluster's own export of the name. */
export interface ObservedImport {
  /** Undefined: the cluster is to have none. */
  readonly wanted: WantedImport | undefined;
  readonly import: Stored<ServiceImport> | undefined;
  readonly service: Stored<Service> | undefined;
  readonly slices: readonly Stored<EndpointSlice>[];
  /** Another implementation's import has the name. */
  readonly isForeign: boolean;
  /** Names of clusters whose exports are not known. */
  readonly unread: ReadonlySet<string>;
  /** Names of those whose endpoints stay meanwhile. */
  readonly keeps: ReadonlySet<string>;
  readonly exported:
    | { readonly object: Stored<ServiceExport>; readonly conditions: readonly WantedCondition[] }
    | undefined;
  /** Returns until when a write is held; epoch ms. */
  readonly heldUntil: (write: ImportAction) => number | undefined;
}

/** An import, the Service and EndpointSlices that it owns, and the cluster's own export of the name. */
export type ImportKind = "import" | "service" | "slice" | "export";

export type ImportAction =
  | { readonly type: "create"; readonly kind: ImportKind; readonly object: ImportObject }
  | { readonly type: "delete"; readonly kind: ImportKind; readonly object: Stored<KubeObject> }
  | {
      readonly type: "patch" | "status";
      readonly kind: ImportKind;
      readonly object: Stored<KubeObject>;
      /** The merge patch, or the status that is Legation's. */
      readonly body: object;
    };

/** Brings an import and its Service, slices and export up to date. */
export function decideImport(observed: ObservedImport, _now: number, wall: number): Decision<ImportAction> {
  const { import: there, isForeign, unread } = observed;
  // An export that is not known may be the only one, or decide: only endpoints are written meanwhile.
  const isPartial = there?.status?.clusters?.some(({ cluster }) => unread.has(cluster)) === true;
  const ofImport = isForeign ? [] : importWrites(observed).filter(({ kind }) => !isPartial || kind === "slice");
  const writes = [...conditionWrites(observed, wall), ...ofImport];
  const held = writes.map(observed.heldUntil);
  const actions = writes.filter((_, index) => held[index] === undefined);
  const outcome = actions.length > 0 ? "Writing" : writes.length > 0 ? "Held" : "InStep";
  return { actions, outcome, ...lookAgain(...held) };
}

function conditionWrites({ exported }: ObservedImport, wall: number): ImportAction[] {
  if (exported === undefined) return [];
  const { object } = exported;
  const conditions = conditionsToWrite(object, exported.conditions, wall);
  return conditions === undefined ? [] : [{ type: "status", kind: "export", object, body: { conditions } }];
}

function importWrites({ wanted, import: there, service, slices, keeps }: ObservedImport): ImportAction[] {
  if (wanted === undefined) {
    // The import takes the rest along; without it, as after a client deleted it, the rest is left to delete.
    if (there !== undefined) return deletions("import", [there]);
    return [...deletions("slice", slices), ...deletions("service", service ? [service] : [])];
  }
  if (there === undefined) return [{ type: "create", kind: "import", object: wanted.import }];
  if (service !== undefined && wanted.service !== undefined && isOfAnotherType(service, wanted.service)) {
    return deletions("service", [service]);
  }
  const thereByName = new Map(slices.map((slice) => [slice.metadata.name, slice]));
  const names = new Set(wanted.slices.map(({ metadata }) => metadata.name));
  const surplus = slices.filter(
    ({ metadata }) => !names.has(metadata.name) && !keeps.has(metadata.labels?.[SOURCE_CLUSTER_LABEL] ?? ""),
  );
  return [
    ...applied("import", there, wanted.import),
    ...applied("service", service, wanted.service),
    ...wanted.slices.flatMap((slice) => applied("slice", thereByName.get(slice.metadata.name), slice)),
    ...deletions("slice", surplus),
    ...statusWrites(there, wanted.clusters),
  ];
}

function statusWrites(object: Stored<ServiceImport>, names: readonly string[]): ImportAction[] {
  const shown = (object.status?.clusters ?? []).map(({ cluster }) => cluster);
  if (jsonEqual(shown.toSorted(), names.toSorted())) return [];
  return [{ type: "status", kind: "import", object, body: { clusters: names.map((cluster) => ({ cluster })) } }];
}

function applied(
  kind: ImportKind,
  there: Stored<KubeObject> | undefined,
  wanted: ImportObject | undefined,
): ImportAction[] {
  if (wanted === undefined) return [];
  if (there === undefined) return [{ type: "create", kind, object: wanted }];
  const body = importPatch(there, wanted);
  return body === undefined ? [] : [{ type: "patch", kind, object: there, body }];
}

function deletions(kind: ImportKind, objects: readonly Stored<KubeObject>[]): ImportAction[] {
  return objects.map((object) => ({ type: "delete", kind, object }));
}
