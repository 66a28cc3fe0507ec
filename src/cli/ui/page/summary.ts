import { shortestReason } from "../../explain/reasons.ts";
import type { MemberRow, PodRow, WarningRow, WholeRow } from "../model.ts";
import { whyLastKnown } from "./freshness.ts";

/** Pods of one state that have the same reason. */
export interface ReasonGroup {
  readonly why: string;
  readonly pods: readonly PodRow[];
  /** When the oldest of them was created; RFC 3339. */
  readonly since: string;
}

/** A copy of a whole object that has not reached its member. */
export interface WaitingCopy {
  readonly object: WholeRow;
  readonly member: string;
  readonly why: string;
}

/** Returns the shortest true reason why a pod does not run, or what is shown of it may be old. Undefined if nothing is wrong. */
export function whyOf(row: PodRow, members: readonly MemberRow[] | undefined): string | undefined {
  const lost = whyLastKnown(row, members);
  if (lost !== undefined) return lost.split(":", 1)[0];
  return row.why === undefined ? undefined : shortestReason(row.why);
}

/** Returns the state of a member in two words at most. */
export function memberState({ ready, isCordoned }: MemberRow): "not ready" | "cordoned" | "ready" {
  return ready !== "True" ? "not ready" : isCordoned ? "cordoned" : "ready";
}

/** Returns the members that are not ready, that are cordoned or that have another reason, those not ready first. */
export function troubled(members: readonly MemberRow[]): MemberRow[] {
  return members
    .filter(({ ready, reason, isCordoned }) => ready !== "True" || reason !== undefined || isCordoned)
    .sort((a, b) => Number(a.ready === "True") - Number(b.ready === "True"));
}

/** Groups the pods of some states by reason, the largest group first. */
export function byReason(
  pods: Iterable<PodRow>,
  states: readonly PodRow["state"][],
  members: readonly MemberRow[] | undefined,
): ReasonGroup[] {
  const chosen = [...pods].filter(({ state }) => states.includes(state));
  const groups = Map.groupBy(chosen, (row) => whyOf(row, members) ?? row.status);
  return [...groups]
    .map(([why, own]) => ({
      why,
      pods: own,
      since: own.map(({ created }) => created).sort()[0] ?? "",
    }))
    .sort((a, b) => b.pods.length - a.pods.length || (a.why < b.why ? -1 : 1));
}

/** Returns the copies that wait for their members. */
export function waitingCopies(objects: readonly WholeRow[]): WaitingCopy[] {
  return objects.flatMap((object) =>
    object.members
      .filter(({ tone }) => tone === "waiting")
      .map(({ member, state, message }) => ({ object, member, why: message ?? state })),
  );
}

/** Returns the warnings of what the page shows: its pods, their workloads, whole objects and members. */
export function ofShown(
  warnings: readonly WarningRow[],
  pods: Iterable<PodRow>,
  objects: readonly WholeRow[],
): WarningRow[] {
  const known = new Set<string>(objects.map(({ kind, namespace = "", name }) => `${namespace}/${kind}/${name}`));
  // Pods are many, and warnings few.
  const names = new Set(warnings.map(({ name }) => name));
  const workloads = new Set(warnings.flatMap((warning) => [`${warning.kind}/${warning.name}`, workloadOf(warning)]));
  for (const { namespace, name, workload } of pods) {
    if (names.has(name)) known.add(`${namespace}/Pod/${name}`);
    if (workload !== undefined && workloads.has(workload)) known.add(`${namespace}/${workload}`);
  }
  return warnings.filter((warning) => {
    const { kind, namespace, name } = warning;
    return (
      known.has(`${namespace}/${kind}/${name}`) ||
      known.has(`${namespace}/${workloadOf(warning)}`) ||
      kind === "Cluster" ||
      kind === "DelegatedType" ||
      (kind === "Node" && name.startsWith("legation-"))
    );
  });
}

/** Returns the workload that a warning is about, as rows name it. */
function workloadOf({ kind, name }: WarningRow): string {
  return kind === "ReplicaSet" ? `Deployment/${name.replace(/-[^-]+$/, "")}` : `${kind}/${name}`;
}
