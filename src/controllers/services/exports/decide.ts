import { jsonEqual } from "../../../api/json.ts";
import type { KubeObject, ServiceExport, Stored } from "../../../api/kubernetes.ts";
import { type Difference, differences, type ExportReport, hostConditions } from "../../../copies/export-status.ts";
import { isExported } from "../../../copies/services.ts";
import { type Decision, lookAgain } from "../../../runtime/requeue.ts";
import type { CopyRef } from "../../copying/model.ts";

export type ExportSource =
  | { readonly state: "present"; readonly object: Stored<ServiceExport> }
  | { readonly state: "missing" }
  | { readonly state: "unknown" };

export interface ObservedCopy {
  readonly ref: CopyRef;
  readonly copy: Stored<KubeObject>;
  /** The member answers, and the copy stays in it. */
  readonly usable: boolean;
  readonly exported: ExportSource;
  /** When the member is to have the ServiceExport next; epoch ms. */
  readonly due: number;
}

export type ExportAction =
  /** Marks the copy and makes a ServiceExport beside it, unless both are so. */
  | {
      readonly type: "export";
      readonly ref: CopyRef;
      readonly copy: Stored<KubeObject>;
      readonly source: Stored<KubeObject>;
    }
  | { readonly type: "unexport"; readonly ref: CopyRef; readonly copy: Stored<KubeObject> };

export function decideExport({ ref, copy, usable, exported, due }: ObservedCopy, now: number): Decision<ExportAction> {
  if (!usable) return { actions: [], outcome: "Unreachable" };
  if (exported.state === "present") {
    if (now < due) return { actions: [], outcome: "InStep", requeueAt: due };
    return { actions: [{ type: "export", ref, copy, source: exported.object }], outcome: "Exporting" };
  }
  const isSurplus = exported.state === "missing" && isExported(copy);
  return { actions: isSurplus ? [{ type: "unexport", ref, copy }] : [], outcome: isSurplus ? "Exporting" : "InStep" };
}

export interface LastReport extends Difference {
  readonly at: number;
  /** resourceVersion of the ServiceExport after the write, or when it was refused. */
  readonly resourceVersion: string;
}

export interface ObservedExport {
  readonly exported: Stored<ServiceExport>;
  readonly reports: readonly ExportReport[];
  /** When this controller heard of the ServiceExport first; epoch ms. */
  readonly since: number;
  readonly last: readonly LastReport[];
}

export interface ReportAction extends Difference {
  readonly exported: Stored<ServiceExport>;
}

// Conditions of an earlier leader stay until the members were read again.
const STARTUP_MS = 10_000;
// Limits the writes for a member whose conditions flap.
const STATUS_INTERVAL_MS = 5_000;
// A policy of the host that refuses the write may be gone by then.
const REFUSED_AGAIN_MS = 10 * 60_000;

/** Writes members' conditions at a limited rate. */
export function decideReport({ exported, reports, since, last }: ObservedExport, now: number): Decision<ReportAction> {
  const differing = differences(exported, hostConditions(exported, reports));
  if (differing.length === 0) return { actions: [], outcome: "InStep" };
  const earliest = (exported.status?.conditions ?? []).length === 0 ? 0 : since + STARTUP_MS;
  const due = (difference: Difference): number => {
    const before = last.find(({ type }) => type === difference.type);
    if (before === undefined) return earliest;
    // Another manager owns a condition of that type, or the API server stores no status.
    const isLeft =
      before.resourceVersion === exported.metadata.resourceVersion && jsonEqual(before.condition, difference.condition);
    return Math.max(earliest, before.at + (isLeft ? REFUSED_AGAIN_MS : STATUS_INTERVAL_MS));
  };
  const ready = differing.filter((difference) => due(difference) <= now);
  const later = differing.map(due).filter((at) => at > now);
  return {
    actions: ready.map((difference) => ({ exported, ...difference })),
    outcome: ready.length > 0 ? "Reporting" : "Waiting",
    ...lookAgain(...later),
  };
}
