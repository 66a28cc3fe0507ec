import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ageOf } from "../../../api/wording.ts";
import type { MemberRow, PodRow } from "../model.ts";
import { podsCommands } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import { Filters } from "./filters.tsx";
import { counted } from "./format.ts";
import { wordsOf } from "./found.ts";
import { MemberLink, NamespaceLink, NodeLink, PodLink, WorkloadLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Awaited, NothingDelegated, Status, useNow } from "./parts.tsx";
import { changeQuery, linkTo, type Route } from "./route.ts";
import { type Column, ordered, orderOf, Rows } from "./rows.tsx";
import { whyOf } from "./summary.ts";

const STATES: readonly PodRow["state"][] = ["waiting", "starting", "running", "failed", "succeeded", "ending"];

function columnsAt(now: number, members: readonly MemberRow[] | undefined): readonly Column<PodRow>[] {
  return [
    {
      name: "Namespace",
      width: "10%",
      cell: (row) => <NamespaceLink name={row.namespace} />,
      by: (row) => `${row.namespace}/${row.name}`,
    },
    {
      name: "Name",
      width: "17%",
      cell: (row) => <PodLink namespace={row.namespace} name={row.name} />,
      by: (row) => row.name,
    },
    { name: "Ready", width: "4.6rem", cell: (row) => row.ready },
    {
      name: "Status",
      width: "12%",
      cell: (row) => <Status row={row} />,
      by: (row) => row.status,
    },
    {
      name: "Why",
      width: "13%",
      cell: (row) => <Why row={row} members={members} />,
      by: (row) => whyOf(row, members) ?? "~",
    },
    { name: "Restarts", width: "6rem", cell: (row) => row.restarts, by: (row) => row.restarts },
    { name: "Member", width: "9%", cell: (row) => <MemberLink name={row.member} />, by: (row) => row.member ?? "" },
    {
      name: "Node",
      width: "8%",
      cell: (row) => <NodeLink member={row.member} name={row.node} />,
      by: (row) => row.node ?? "",
    },
    {
      name: "Workload",
      width: "11%",
      cell: (row) => <WorkloadLink namespace={row.namespace} of={row.workload} />,
      by: (row) => row.workload ?? "",
    },
    {
      name: "Age",
      width: "4.8rem",
      cell: (row) => ageOf(row.created, now) ?? "–",
      by: (row) => -Date.parse(row.created),
    },
  ];
}

/** The shortest reason, and all of it as its tooltip. */
function Why({ row, members }: { row: PodRow; members: readonly MemberRow[] | undefined }): JSX.Element {
  const why = whyOf(row, members);
  return <span title={row.why ?? why}>{why ?? ""}</span>;
}

/** All delegated pods, filtered, searched and sorted as the address says. */
export function Pods({ route }: { route: Route }): JSX.Element {
  const { pods, isComplete, version, members } = useLive();
  const now = useNow();
  const {
    q = "",
    namespace = "",
    workload = "",
    member = "",
    state = "",
    sort = "-Age",
  } = Object.fromEntries(route.query);
  const columns = useMemo(() => columnsAt(now, members), [now, members]);
  const order = orderOf(sort);
  const shown = useMemo(() => {
    const words = wordsOf(q);
    const matching = [...pods.values()].filter(
      (row) =>
        (namespace === "" || row.namespace === namespace) &&
        (workload === "" || row.workload === workload) &&
        (member === "" || (row.member ?? "–") === member) &&
        (state === "" || row.state === state) &&
        isMatch(row, words),
    );
    return ordered(matching, columns, order);
    // The map is one and the same: its version tells of changes.
  }, [version, q, namespace, workload, member, state, sort, columns]);
  const namespaces = useMemo(() => [...new Set([...pods.values()].map((row) => row.namespace))].sort(), [version]);
  const workloads = useMemo(() => {
    const within = [...pods.values()].filter((row) => namespace === "" || row.namespace === namespace);
    return [...new Set(within.flatMap((row) => row.workload ?? []))].sort();
  }, [version, namespace]);
  if (!isComplete && pods.size === 0) return <Awaited what="the pods" />;
  return (
    <div class="fill">
      <header class="view-head">
        <h1>Pods</h1>
        <p aria-live="polite">
          {shown.length === pods.size
            ? counted(pods.size, "pod")
            : `${shown.length.toLocaleString()} of ${counted(pods.size, "pod")}`}
          {!isComplete && ", still reading…"}
        </p>
        <Filters
          route={route}
          filters={[
            { name: "namespace", of: namespaces, clears: "workload" },
            { name: "workload", of: workloads },
            { name: "member", of: members?.map(({ name }) => name) ?? [], besides: ["–", "no member yet"] },
            { name: "state", of: STATES },
          ]}
        />
        <CopyButtons commands={podsCommands(namespace || undefined)} />
      </header>
      {isComplete && pods.size === 0 ? (
        <NothingDelegated
          title="No pod is delegated"
          steps="Opt a namespace in, and say which of its pods go to members:"
        />
      ) : (
        <Rows
          label="Pods"
          columns={columns}
          rows={shown}
          keyOf={(row) => row.uid}
          order={order}
          none={{ words: "No pod is like this.", link: linkTo(["pods"]) }}
          onOrder={(sorted) => changeQuery(route, { sort: sorted })}
        />
      )}
    </div>
  );
}

function isMatch(row: PodRow, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text =
    `${row.namespace}/${row.name} ${row.status} ${row.member} ${row.node} ${row.workload} ${row.why}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
