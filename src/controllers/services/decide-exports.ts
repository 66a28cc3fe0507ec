import { jsonEqual } from "../../api/json.ts";
import type { KubeObject, ServiceExport, Stored } from "../../api/kubernetes.ts";
import { type Difference, differences, type ExportReport, hostConditions } from "../../copies/export-status.ts";
import { isExported } from "../../copies/services.ts";
import type { CopyRef } from "../copying/model.ts";

/** A ServiceExport of the host, as far as it is known. */
export type ExportSource =
  | { readonly state: "present"; readonly object: Stored<ServiceExport> }
  | { readonly state: "missing" }
  | { readonly state: "unknown" };

/** Everything that the ServiceExport beside one Service's copy depends on. */
export interface ObservedCopy {
  readonly ref: CopyRef;
  readonly copy: Stored<KubeObject>;
  /** The member answers, and the copy stays there. */
  readonly usable: boolean;
  readonly exported: ExportSource;
  /** When the member is to have the ServiceExport next; epoch ms. */
  readonly due: number;
}

/** One write in the member. */
export type ExportAction =
  /** Marks the copy and makes a ServiceExport beside it, unless both are so. */
  | {
      readonly type: "export";
      readonly ref: CopyRef;
      readonly copy: Stored<KubeObject>;
      readonly source: Stored<KubeObject>;
    }
  /** Removes the ServiceExport, and then the mark. */
  | { readonly type: "unexport"; readonly ref: CopyRef; readonly copy: Stored<KubeObject> };

/** What to do now, and when to look again without an event. */
export interface ExportDecision<Action> {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

/** Exports a Service's copy while the host exports the Service. */
export function decideExport(
  { ref, copy, usable, exported, due }: ObservedCopy,
  now: number,
): ExportDecision<ExportAction> {
  if (!usable) return { actions: [], outcome: "Unreachable" };
  if (exported.state === "present") {
    if (now < due) return { actions: [], outcome: "InStep", requeueAt: due };
    return { actions: [{ type: "export", ref, copy, source: exported.object }], outcome: "Exporting" };
  }
  const isSurplus = exported.state === "missing" && isExported(copy);
  return { actions: isSurplus ? [{ type: "unexport", ref, copy }] : [], outcome: isSurplus ? "Exporting" : "InStep" };
}

/** What was written last of one type of condition. */
export interface LastReport extends Difference {
  readonly at: number;
  /** Of the ServiceExport after it, or when it was refused. */
  readonly resourceVersion: string;
}

/** Everything that the status of one ServiceExport of the host depends on. */
export interface ObservedExport {
  readonly exported: Stored<ServiceExport>;
  readonly reports: readonly ExportReport[];
  /** When this controller heard of the ServiceExport first; epoch ms. */
  readonly since: number;
  readonly last: readonly LastReport[];
}

/** One write: a condition, or that there is none. */
export interface ReportAction extends Difference {
  readonly exported: Stored<ServiceExport>;
}

// What an earlier leader wrote stays until the members have been heard again.
const SETTLING_MS = 10_000;
// A member that changes its mind all the time costs the host no more than this.
const INTERVAL_MS = 5_000;
// Whoever keeps the host from taking it may have stopped.
const AGAIN_MS = 10 * 60_000;

/** Brings the host's status in step with what members report, seldom enough. */
export function decideReport(
  { exported, reports, since, last }: ObservedExport,
  now: number,
): ExportDecision<ReportAction> {
  const differing = differences(exported, hostConditions(exported, reports));
  if (differing.length === 0) return { actions: [], outcome: "InStep" };
  const settled = (exported.status?.conditions ?? []).length === 0 ? 0 : since + SETTLING_MS;
  const due = (difference: Difference): number => {
    const before = last.find(({ type }) => type === difference.type);
    if (before === undefined) return settled;
    // Somebody else has a condition of that type, or the API server keeps no status.
    const isLeft =
      before.resourceVersion === exported.metadata.resourceVersion && jsonEqual(before.condition, difference.condition);
    return Math.max(settled, before.at + (isLeft ? AGAIN_MS : INTERVAL_MS));
  };
  const ready = differing.filter((difference) => due(difference) <= now);
  const later = differing.map(due).filter((at) => at > now);
  return {
    actions: ready.map((difference) => ({ exported, ...difference })),
    outcome: ready.length > 0 ? "Reporting" : "Waiting",
    ...(later.length === 0 ? {} : { requeueAt: Math.min(...later) }),
  };
}
