import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ageOf } from "../../../api/wording.ts";
import type { MemberRow, PodRow } from "../model.ts";
import { podsCommands } from "./commands.ts";
import { counted } from "./format.ts";
import { MemberLink, NamespaceLink, NodeLink, PodLink, WorkloadLink } from "./links.tsx";
import { Listing } from "./listing.tsx";
import { useLive } from "./live.ts";
import { Awaited, Status, useNow } from "./parts.tsx";
import type { Route } from "./route.ts";
import type { Column } from "./rows.tsx";
import { whyOf } from "./summary.ts";

const STATES: readonly PodRow["state"][] = ["waiting", "starting", "running", "failed", "succeeded", "ending"];
const NO_MEMBER = "–";

/** Returns the share of a pod's containers that are ready. */
function wholeness({ ready }: PodRow): number {
  const [are = 0, all = 1] = ready.split("/").map(Number);
  return are / Math.max(1, all);
}

function columnsAt(now: number, members: readonly MemberRow[] | undefined): readonly Column<PodRow>[] {
  return [
    {
      name: "Namespace",
      width: "10%",
      cell: ({ namespace }) => <NamespaceLink name={namespace} />,
      by: ({ namespace, name }) => `${namespace}/${name}`,
    },
    { name: "Name", width: "17%", cell: (row) => <PodLink {...row} />, by: ({ name }) => name },
    { name: "Ready", width: "4.6rem", cell: ({ ready }) => ready, by: wholeness },
    { name: "Status", width: "12%", cell: (row) => <Status row={row} />, by: ({ status }) => status },
    {
      name: "Why",
      width: "13%",
      cell: (row) => <Why row={row} members={members} />,
      by: (row) => whyOf(row, members) ?? "~",
    },
    { name: "Restarts", width: "6rem", cell: ({ restarts }) => restarts, by: ({ restarts }) => restarts },
    {
      name: "Member",
      width: "9%",
      cell: ({ member }) => <MemberLink name={member} />,
      by: ({ member = "" }) => member,
    },
    {
      name: "Node",
      width: "8%",
      cell: ({ member, node }) => <NodeLink member={member} name={node} />,
      by: ({ node = "" }) => node,
    },
    {
      name: "Workload",
      width: "11%",
      cell: ({ namespace, workload }) => <WorkloadLink namespace={namespace} of={workload} />,
      by: ({ workload = "" }) => workload,
    },
    {
      name: "Age",
      width: "4.8rem",
      cell: ({ created }) => ageOf(created, now) ?? "–",
      by: ({ created }) => -Date.parse(created),
    },
  ];
}

/** The shortest reason, and all of it as its tooltip. */
export function Why({ row, members }: { row: PodRow; members: readonly MemberRow[] | undefined }): JSX.Element {
  const why = whyOf(row, members);
  return <span title={row.why ?? why}>{why}</span>;
}

/** All delegated pods. */
export function Pods({ route }: { route: Route }): JSX.Element {
  const { pods, isComplete, version, members } = useLive();
  const now = useNow();
  const columns = useMemo(() => columnsAt(now, members), [now, members]);
  // The map is one and the same: its version tells of changes.
  const rows = useMemo(() => [...pods.values()], [version]);
  const names = members?.map(({ name }) => name) ?? [];
  const chosen = route.query.get("namespace") ?? "";
  const namespaces = useMemo(() => [...new Set(rows.map(({ namespace }) => namespace))].sort(), [rows]);
  const workloads = useMemo(() => {
    const within = rows.filter(({ namespace }) => chosen === "" || namespace === chosen);
    return [...new Set(within.flatMap(({ workload }) => workload ?? []))].sort();
  }, [rows, chosen]);
  if (!isComplete && pods.size === 0) return <Awaited what="the pods" />;
  return (
    <Listing
      route={route}
      title="Pods"
      about={(shown) =>
        `${shown === pods.size ? "" : `${shown.toLocaleString()} of `}${counted(pods.size, "pod")}${isComplete ? "" : ", still reading…"}`
      }
      commands={podsCommands(chosen || undefined)}
      rows={rows}
      keyOf={({ uid }) => uid}
      columns={columns}
      filters={[
        { name: "namespace", of: namespaces, has: (row, value) => row.namespace === value, clears: "workload" },
        { name: "workload", of: workloads, has: (row, value) => row.workload === value },
        {
          name: "member",
          of: [...names, NO_MEMBER],
          words: [...names, "no member yet"],
          has: (row, value) => (row.member ?? NO_MEMBER) === value,
        },
        { name: "state", of: STATES, has: (row, value) => row.state === value },
      ]}
      textOf={(row) =>
        `${row.namespace}/${row.name} ${row.status} ${row.member} ${row.node} ${row.workload} ${row.why}`
      }
      sort="-Age"
      none="No pod is like this."
      nothing={{
        title: "No pod is delegated",
        steps: "Opt a namespace in, and say which of its pods go to members:",
      }}
    />
  );
}
