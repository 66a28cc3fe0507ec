import { shortestReason } from "../../explain/reasons.ts";
import type { JobRow, PodRow, WholeRow } from "../model.ts";
import { linkTo } from "./route.ts";

/** A workload with delegated pods, or a whole object. */
export interface WorkloadRow {
  readonly key: string;
  readonly link: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly isWhole: boolean;
  /** Pods of all places; members of a whole object. */
  readonly total: number;
  /** Pods without a member; members that do not have the object yet. */
  readonly waiting: number;
  /** Pods, or copies, that leave a member. */
  readonly leaving: number;
  /** The shortest reason why a part of it does not run. Undefined: nothing is wrong. */
  readonly why: string | undefined;
  readonly places: ReadonlyMap<string, PlaceShare>;
}

/** A member's part of a workload. */
export interface PlaceShare {
  readonly text: string;
  readonly title: string;
  readonly tone: PodRow["state"];
  /** Part of the whole, up to 1. */
  readonly part: number;
}

/** The workloads of pods that change. Only those that have changed are described anew. */
export class PodWorkloads {
  readonly #pods = new Map<string, Map<string, PodRow>>();
  readonly #rows = new Map<string, WorkloadRow>();

  /** Takes a pod's row before and after a change. */
  set(before: PodRow | undefined, after: PodRow | undefined): void {
    for (const row of [before, after]) {
      if (row?.workload === undefined) continue;
      const key = `${row.namespace}/${row.workload}`;
      const pods = this.#pods.get(key) ?? new Map<string, PodRow>();
      this.#pods.set(key, pods);
      if (row === after) pods.set(row.uid, row);
      else pods.delete(row.uid);
      if (pods.size === 0) this.#pods.delete(key);
      this.#rows.delete(key);
    }
  }

  /** Returns the workloads, in the order of their names. Pods that have succeeded count for one that has no others. */
  list(): WorkloadRow[] {
    return [...this.#pods].map(([key, pods]) => this.#row(key, pods)).sort(byKey);
  }

  #row(key: string, pods: ReadonlyMap<string, PodRow>): WorkloadRow {
    const known = this.#rows.get(key);
    if (known !== undefined) return known;
    const own = [...pods.values()];
    const unfinished = own.filter(({ state }) => state !== "succeeded");
    const row = workloadRow(key, unfinished.length === 0 ? own : unfinished);
    this.#rows.set(key, row);
    return row;
  }
}

/** Returns the workloads of pods like `PodWorkloads`. */
export function podWorkloads(pods: Iterable<PodRow>): WorkloadRow[] {
  const workloads = new PodWorkloads();
  for (const pod of pods) workloads.set(undefined, pod);
  return workloads.list();
}

/** Returns finished Jobs and CronJobs that are delegated: their authors ask for it, or they have delegated pods. */
export function jobWorkloads(rows: readonly JobRow[], known: readonly WorkloadRow[]): WorkloadRow[] {
  const keys = new Set(known.map(({ key }) => key));
  const isShown = ({ kind, namespace, name, asks }: JobRow): boolean =>
    asks || keys.has(`${namespace}/${kind}/${name}`);
  const ofCrons = new Set(rows.filter(isShown).map(({ namespace, cronJob }) => `${namespace}/${cronJob}`));
  return rows
    .filter((row) => isShown(row) || (row.kind === "CronJob" && ofCrons.has(`${row.namespace}/${row.name}`)))
    .filter(({ kind, namespace, name }) => !keys.has(`${namespace}/${kind}/${name}`))
    .map(({ kind, namespace, name, state }) => ({ ...workloadRow(`${namespace}/${kind}/${name}`, []), why: state }));
}

/** Returns the row of a workload by its pods, of which there may be none. */
function workloadRow(key: string, pods: readonly PodRow[]): WorkloadRow {
  const [namespace = "", kind = "", name = ""] = key.split("/");
  const there = Map.groupBy(
    pods.filter(({ member }) => member !== undefined),
    ({ member = "" }) => member,
  );
  return {
    key,
    link: linkTo(["workloads", kind, namespace, name]),
    kind,
    namespace,
    name,
    isWhole: false,
    total: pods.length,
    waiting: pods.filter(({ member }) => member === undefined).length,
    leaving: pods.filter(({ state }) => state === "ending").length,
    why: pods.every(({ state }) => state === "succeeded")
      ? "finished"
      : shortest(pods.map(({ state, why }) => (state === "running" ? undefined : why))),
    places: new Map([...there].map(([member, own]) => [member, podShare(own, pods.length)])),
  };
}

function shortest(reasons: readonly (string | undefined)[]): string | undefined {
  const short = reasons.flatMap((reason) => (reason === undefined || reason === "" ? [] : [shortestReason(reason)]));
  return short.sort((a, b) => a.length - b.length)[0];
}

function podShare(pods: readonly PodRow[], total: number): PlaceShare {
  const running = pods.filter(({ state }) => state === "running").length;
  const failed = pods.some(({ state }) => state === "failed");
  const succeeded = pods.every(({ state }) => state === "succeeded");
  return {
    text: running === pods.length || succeeded ? String(pods.length) : `${running}/${pods.length}`,
    title: `${running} of ${pods.length} run`,
    tone: failed ? "failed" : succeeded ? "succeeded" : running === pods.length ? "running" : "starting",
    part: pods.length / total,
  };
}

/** Returns the row of a whole object. */
export function wholeWorkload(row: WholeRow): WorkloadRow {
  const { kind, namespace = "", name, members, isEnding } = row;
  return {
    ...workloadRow(`${namespace}/${kind}/${name}`, []),
    link: wholeLink(row),
    isWhole: true,
    total: members.length,
    waiting: members.length === 0 ? Number(!isEnding) : members.filter(({ tone }) => tone === "waiting").length,
    leaving: isEnding ? members.length : members.filter(({ tone }) => tone === "ending").length,
    why: shortest(members.map(({ tone, message }) => (tone === "waiting" || tone === "failed" ? message : undefined))),
    places: new Map(
      members.map(({ member, state, message, tone, done }) => {
        const [has, wanted = 1] = done ?? [1];
        const title = [state, message].filter(Boolean).join(": ");
        return [member, { text: done?.join("/") ?? state, title, tone, part: has / Math.max(1, wanted) }];
      }),
    ),
  };
}

export function wholeLink({ type, namespace = "_", name }: Omit<WholeRow, "members">): string {
  return linkTo(["objects", type, namespace, name]);
}

export function byKey(a: WorkloadRow, b: WorkloadRow): number {
  return a.key < b.key ? -1 : 1;
}
