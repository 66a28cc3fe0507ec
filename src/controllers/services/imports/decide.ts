import type { WantedCondition } from "../../../api/conditions.ts";
import { jsonEqual } from "../../../api/json.ts";
import type {
  EndpointSlice,
  ExportCondition,
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

export type ImportKind = "import" | "service" | "slice";

export type ImportAction =
  | {
      readonly type: "create";
      readonly kind: ImportKind;
      readonly object: ImportObject;
    }
  | { readonly type: "patch"; readonly kind: ImportKind; readonly object: Stored<KubeObject>; readonly patch: object }
  | { readonly type: "delete"; readonly kind: ImportKind; readonly object: Stored<KubeObject> }
  | {
      readonly type: "status";
      readonly kind: "status";
      readonly object: Stored<ServiceImport>;
      readonly clusters: readonly string[];
    }
  | {
      readonly type: "conditions";
      readonly kind: "conditions";
      readonly object: Stored<ServiceExport>;
      readonly conditions: readonly ExportCondition[];
    };

/** Brings an import and its Service, slices and export up to date. */
export function decideImport(observed: ObservedImport, _now: number, wall: number): Decision<ImportAction> {
  const writes = [...conditionWrites(observed, wall), ...importWrites(observed)];
  const held = writes.map(observed.heldUntil);
  const actions = writes.filter((_, index) => held[index] === undefined);
  const outcome = actions.length > 0 ? "Writing" : writes.length > 0 ? "Held" : "InStep";
  return { actions, outcome, ...lookAgain(...held) };
}

function conditionWrites({ exported }: ObservedImport, wall: number): ImportAction[] {
  const conditions = exported && conditionsToWrite(exported.object, exported.conditions, wall);
  return exported === undefined || conditions === undefined
    ? []
    : [{ type: "conditions", kind: "conditions", object: exported.object, conditions }];
}

function importWrites(observed: ObservedImport): ImportAction[] {
  const { wanted, import: there, service, slices, isForeign, unread } = observed;
  if (isForeign) return [];
  // An export that is not known may be the only one, or decide.
  const isPartial = there?.status?.clusters?.some(({ cluster }) => unread.has(cluster)) === true;
  if (wanted === undefined) {
    if (isPartial) return [];
    // The import takes the rest along; without it, as after a client deleted it, the rest is left to delete.
    if (there !== undefined) return [deletion("import", there)];
    return [...slices.map((slice) => deletion("slice", slice)), ...(service ? [deletion("service", service)] : [])];
  }
  if (there === undefined) return [{ type: "create", kind: "import", object: wanted.import }];
  if (service !== undefined && wanted.service !== undefined && isOfAnotherType(service, wanted.service)) {
    return isPartial ? [] : [deletion("service", service)];
  }
  return [
    ...(isPartial ? [] : [...applied("import", there, wanted.import), ...applied("service", service, wanted.service)]),
    ...sliceWrites(observed, wanted),
    ...(isPartial ? [] : statusWrites(there, wanted.clusters)),
  ];
}

function statusWrites(there: Stored<ServiceImport>, clusters: readonly string[]): ImportAction[] {
  const shown = (there.status?.clusters ?? []).map(({ cluster }) => cluster);
  return jsonEqual(shown.toSorted(), clusters.toSorted())
    ? []
    : [{ type: "status", kind: "status", object: there, clusters }];
}

function sliceWrites({ slices, keeps }: ObservedImport, wanted: WantedImport): ImportAction[] {
  const surplus = slices.filter(
    ({ metadata }) =>
      wanted.slices.every((slice) => slice.metadata.name !== metadata.name) &&
      !keeps.has(metadata.labels?.[SOURCE_CLUSTER_LABEL] ?? ""),
  );
  return [
    ...wanted.slices.flatMap((slice) =>
      applied(
        "slice",
        slices.find(({ metadata }) => metadata.name === slice.metadata.name),
        slice,
      ),
    ),
    ...surplus.map((slice) => deletion("slice", slice)),
  ];
}

function applied(
  kind: ImportKind,
  there: Stored<KubeObject> | undefined,
  wanted: ImportObject | undefined,
): ImportAction[] {
  if (wanted === undefined) return [];
  if (there === undefined) return [{ type: "create", kind, object: wanted }];
  const patch = importPatch(there, wanted);
  return patch === undefined ? [] : [{ type: "patch", kind, object: there, patch }];
}

function deletion(kind: ImportKind, object: Stored<KubeObject>): ImportAction {
  return { type: "delete", kind, object };
}
