import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { WorkloadStatus } from "../../status/workload.ts";
import type { PodRow } from "../model.ts";
import { counted } from "./format.ts";
import { useLive } from "./live.ts";
import { Badge, Empty, Search, useReading } from "./parts.tsx";
import { changeQuery, linkTo, type Route } from "./route.ts";

/** The delegated pods of one workload. */
interface Workload {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly pods: readonly PodRow[];
}

const NONE = "no member yet";

/** All workloads with delegated pods, and where these are. */
export function Workloads({ route }: { route: Route }): JSX.Element {
  const { pods, version, isComplete } = useLive();
  const q = route.query.get("q") ?? "";
  const all = useMemo(() => workloadsOf([...pods.values()]), [version]);
  const shown = all.filter(({ kind, namespace, name }) =>
    `${namespace}/${kind}/${name}`.toLowerCase().includes(q.toLowerCase()),
  );
  const names = useMemo(() => [...new Set([...pods.values()].map(placeOf))].sort(lastNone), [version]);
  return (
    <>
      <header class="view-head">
        <h1>Workloads</h1>
        <p>{isComplete ? counted(shown.length, "workload") : "still reading…"}</p>
        <div class="filters">
          <Search value={q} onSearch={(words) => changeQuery(route, { q: words })} />
        </div>
      </header>
      {isComplete && all.length === 0 ? (
        <Empty title="No workload has delegated pods">
          <p>Pods without a workload are under Pods.</p>
        </Empty>
      ) : (
        <table class="list">
          <thead>
            <tr>
              <th>Workload</th>
              <th>Namespace</th>
              <th>Pods</th>
              {names.map((name) => (
                <th key={name}>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((workload) => (
              <WorkloadRow key={keyOf(workload)} workload={workload} names={names} />
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function WorkloadRow({ workload, names }: { workload: Workload; names: readonly string[] }): JSX.Element {
  const { kind, namespace, name, pods } = workload;
  const by = Map.groupBy(pods, placeOf);
  return (
    <tr>
      <td>
        <a href={linkTo(["workloads", kind, namespace, name])}>
          {kind}/{name}
        </a>
      </td>
      <td>{namespace}</td>
      <td>{pods.length}</td>
      {names.map((place) => {
        const there = by.get(place) ?? [];
        const running = there.filter(({ state }) => state === "running").length;
        return (
          <td key={place}>
            {there.length > 0 && (
              <span class="share" title={`${running} of ${there.length} run`}>
                <i style={{ width: `${(there.length / pods.length) * 100}%` }} class={place === NONE ? "none" : ""} />
                {there.length}
              </span>
            )}
          </td>
        );
      })}
    </tr>
  );
}

function placeOf({ member }: PodRow): string {
  return member ?? NONE;
}

/** Orders names, with the pods without a member last. */
function lastNone(a: string, b: string): number {
  if (a === NONE || b === NONE) return a === b ? 0 : a === NONE ? 1 : -1;
  return a < b ? -1 : 1;
}

function keyOf({ kind, namespace, name }: Workload): string {
  return `${namespace}/${kind}/${name}`;
}

function workloadsOf(pods: readonly PodRow[]): Workload[] {
  const owned = pods.filter(({ workload, state }) => workload !== undefined && state !== "succeeded");
  return [...Map.groupBy(owned, ({ namespace, workload }) => `${namespace}/${workload}`)]
    .map(([key, of]) => {
      const [namespace = "", kind = "", name = ""] = key.split("/");
      return { kind, namespace, name, pods: of };
    })
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The view of a workload: the pods that its scheduling preferences want in each member, beside those that are there. */
export function WorkloadPage({
  kind,
  namespace,
  name,
}: {
  kind: string;
  namespace: string;
  name: string;
}): JSX.Element {
  const { pods } = useLive();
  const { value, problem } = useReading<WorkloadStatus>(
    `/api/workloads/${[kind, namespace, name].map(encodeURIComponent).join("/")}`,
    undefined,
  );
  const own = [...pods.values()].filter((row) => row.namespace === namespace && row.workload === `${kind}/${name}`);
  return (
    <>
      <header class="view-head">
        <h1>
          {kind}/{name}
        </h1>
        <p>namespace {namespace}</p>
      </header>
      {problem !== undefined && <p class="trouble">{problem}</p>}
      {value?.clusters !== undefined && <Division status={value} />}
      {value?.troubles?.map(({ what, remedy }) => (
        <p class="trouble" key={what}>
          {what}
          {remedy !== undefined && <small> {remedy}</small>}
        </p>
      ))}
      {value?.pending?.map(({ reason, message, pods: names }) => (
        <section key={reason + message}>
          <h2>
            {counted(names.length, "pod")} without a member: {reason}
          </h2>
          <Reasons message={message} />
        </section>
      ))}
      <h2>Pods</h2>
      <ul class="plain">
        {own.map((row) => (
          <li key={row.uid}>
            <a href={linkTo(["pods", namespace, row.name])}>{row.name}</a> <Badge tone={row.state}>{row.status}</Badge>{" "}
            {row.member ?? NONE}
          </li>
        ))}
      </ul>
    </>
  );
}

function Division({ status }: { status: WorkloadStatus }): JSX.Element {
  const most = Math.max(1, ...status.clusters.map(({ wanted = 0, has }) => Math.max(wanted, has)));
  return (
    <table class="list">
      <caption>
        {counted(status.replicas, "replica")} wanted, {status.pods} there
      </caption>
      <thead>
        <tr>
          <th>Member</th>
          <th>Wanted</th>
          <th>There</th>
          <th>Ready</th>
          <th class="wide">Wanted beside there</th>
          <th>Why not one more</th>
        </tr>
      </thead>
      <tbody>
        {status.clusters.map(({ cluster, wanted, has, ready, whyNot }) => (
          <tr key={cluster}>
            <td>{cluster}</td>
            <td>{wanted ?? "–"}</td>
            <td>{has}</td>
            <td>{ready}</td>
            <td>
              <div class="pair" role="img" aria-label={`${cluster}: ${wanted ?? "no share"} wanted, ${has} there`}>
                <i class="others" style={{ width: `${((wanted ?? 0) / most) * 100}%` }} />
                <i class="ours" style={{ width: `${(has / most) * 100}%` }} />
              </div>
            </td>
            <td class="muted">{whyNot ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A message with a reason for each member, as a table. */
export function Reasons({ message }: { message: string }): JSX.Element {
  const rows = message.split("; ").map((part) => {
    const [, member, reason] = /^([a-z0-9][-a-z0-9]*): (.*)$/.exec(part) ?? [];
    return { member: member ?? "", reason: reason ?? part };
  });
  return (
    <table class="list reasons">
      <thead>
        <tr>
          <th>Member</th>
          <th class="wide">Reason</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ member, reason }) => (
          <tr key={member + reason}>
            <td>{member}</td>
            <td>{reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
