import { isShown, type WantedCondition, withTransitionTime } from "../api/conditions.ts";
import { DELEGATION_LABEL } from "../api/keys.ts";
import { type ExportCondition, type Service, type ServiceExport, type Stored, timestamp } from "../api/kubernetes.ts";
import { type ExportConflict, mayBeExported } from "./service-imports.ts";

export interface ExportState {
  readonly exported: Stored<ServiceExport>;
  readonly service: Stored<Service> | undefined;
  readonly isDelegated: boolean;
  /** Some cluster of its network imports it. */
  readonly isImported: boolean;
  readonly conflicts: readonly ExportConflict[];
}

export function exportConditions(state: ExportState): readonly WantedCondition[] {
  const valid = validCondition(state);
  if (valid.status === "False") {
    return [valid, { type: "Ready", status: "False", reason: "Failed", message: valid.message }];
  }
  return [valid, readyCondition(state), conflictCondition(state)];
}

function validCondition({ exported: { metadata }, service }: ExportState): WantedCondition {
  const type = "Valid";
  const not = (reason: string, message: string): WantedCondition => ({ type, status: "False", reason, message });
  if (service === undefined)
    return not("NoService", `there is no Service ${metadata.name} in the namespace; create it`);
  return mayBeExported(service)
    ? { type, status: "True", reason: "Valid", message: "the Service can be exported" }
    : not("InvalidServiceType", "a Service of type ExternalName has no endpoints; export one of another type");
}

function readyCondition({ exported: { metadata }, isDelegated, isImported }: ExportState): WantedCondition {
  const type = "Ready";
  const pending = (reason: string, message: string): WantedCondition => ({ type, status: "False", reason, message });
  if (!isDelegated) {
    return pending(
      "NamespaceNotDelegated",
      `namespace ${metadata.namespace} has no label ${DELEGATION_LABEL} on the host; label it to share its Services`,
    );
  }
  if (!isImported) return pending("Pending", "no cluster is in a network; write spec.network of Clusters");
  return { type, status: "True", reason: "Exported", message: "exported to the clusters of the network" };
}

function conflictCondition({ conflicts }: ExportState): WantedCondition {
  if (conflicts.length === 0) {
    return { type: "Conflict", status: "False", reason: "NoConflicts", message: "all exports agree" };
  }
  return {
    type: "Conflict",
    status: "True",
    reason: conflicts.map(({ reason }) => reason).join(","),
    message: `exports of other clusters differ in ${conflicts.map(({ field }) => field).join(", ")}: the oldest export decides`,
  };
}

/** Returns the conditions with their times. Undefined if the export has them. `wall` is epoch ms. */
export function conditionsToWrite(
  { status }: Stored<ServiceExport>,
  wanted: readonly WantedCondition[],
  wall: number,
): readonly ExportCondition[] | undefined {
  const shown = status?.conditions;
  if (wanted.every((condition) => isShown(condition, shown))) return undefined;
  return wanted.map((condition) => withTransitionTime(condition, shown, timestamp(wall)));
}
