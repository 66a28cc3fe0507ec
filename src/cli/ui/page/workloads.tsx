import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { JobRow } from "../model.ts";
import { podsCommands } from "./commands.ts";
import { counted } from "./format.ts";
import { whyLost } from "./freshness.ts";
import { NameLink, NamespaceLink } from "./links.tsx";
import { Listing } from "./listing.tsx";
import { useLive } from "./live.ts";
import { Awaited, useReading } from "./parts.tsx";
import type { Route } from "./route.ts";
import type { Column } from "./rows.tsx";
import { byKey, jobWorkloads, type WorkloadRow, wholeWorkload } from "./workload-rows.ts";

const FIRST: readonly Column<WorkloadRow>[] = [
  {
    name: "Workload",
    width: "14rem",
    cell: ({ link, kind, name, isWhole }) => (
      <span>
        <NameLink href={link} name={`${kind}/${name}`} />
        {isWhole && <span class="chip">whole</span>}
      </span>
    ),
    by: ({ kind, name }) => `${kind}/${name}`,
  },
  {
    name: "Namespace",
    width: "8rem",
    cell: ({ namespace }) => <NamespaceLink name={namespace} />,
    by: ({ namespace }) => namespace,
  },
  { name: "Pods", width: "4rem", cell: ({ total, isWhole }) => (isWhole ? "–" : total), by: ({ total }) => total },
  {
    name: "Waiting",
    width: "5.4rem",
    cell: ({ waiting }) => (waiting === 0 ? "–" : <span class="waiting">{waiting}</span>),
    by: ({ waiting }) => waiting,
  },
  {
    name: "Leaving",
    width: "5.6rem",
    cell: ({ leaving }) => (leaving === 0 ? "–" : <span class="ending">{leaving}</span>),
    by: ({ leaving }) => leaving,
  },
  { name: "Why", width: "12rem", cell: ({ why }) => <span title={why}>{why}</span>, by: ({ why = "~" }) => why },
];
// Members with a column of their own; more than these share one.
const MOST_COLUMNS = 12;
const SHOWN_PLACES = 3;
// With three members the table fits a window of 1280 pixels.
const FIRST_REM = 49;
const MEMBER_REM = 8;
const JOBS_EVERY_MS = 15_000;
const NO_JOBS: readonly JobRow[] = [];

/** Reads finished Jobs and CronJobs, which have no pods that the page follows. `notes`: why they are not shown. */
export function useJobs(): { readonly jobs: readonly JobRow[]; readonly notes: JSX.Element | undefined } {
  const { value: jobs = NO_JOBS, problem } = useReading<readonly JobRow[]>("/api/jobs", JOBS_EVERY_MS);
  const notes =
    problem === undefined ? undefined : <p class="trouble">Finished Jobs and CronJobs are not shown: {problem}</p>;
  return { jobs, notes };
}

/** All workloads with delegated pods and all whole objects, and what each member has of them. */
export function Workloads({ route }: { route: Route }): JSX.Element {
  const { workloads, version, isComplete, whole, members } = useLive();
  const { jobs, notes } = useJobs();
  const all = useMemo(() => {
    const known = [...workloads.list(), ...whole.rows.map(wholeWorkload)];
    return [...known, ...jobWorkloads(jobs, known)].sort(byKey);
    // The object is one and the same: its version tells of changes.
  }, [version, whole, jobs]);
  const names = useMemo(() => [...new Set(all.flatMap(({ places }) => [...places.keys()]))].sort(), [all]);
  const isMany = names.length > MOST_COLUMNS;
  const columns = useMemo(() => {
    const lost = (name: string): string | undefined => whyLost(name, members);
    return [...FIRST, ...(isMany ? [placesColumn(lost)] : names.map((name) => memberColumn(name, lost(name))))];
  }, [names.join(), members]);
  if (!isComplete && all.length === 0) return <Awaited what="the workloads" />;
  const namespaces = [...new Set(all.map(({ namespace }) => namespace))].filter(Boolean).sort();
  return (
    <Listing
      route={route}
      title="Workloads"
      about={(shown) => (isComplete ? counted(shown, "workload") : "still reading…")}
      commands={podsCommands(route.query.get("namespace") ?? undefined)}
      rows={all}
      keyOf={({ key, isWhole }) => `${key}${isWhole}`}
      columns={columns}
      filters={[
        { name: "namespace", of: namespaces, has: (row, value) => row.namespace === value },
        ...(isMany ? [{ name: "member", of: names, has: inMember }] : []),
      ]}
      textOf={({ key, isWhole }) => `${key}${isWhole ? " whole" : ""}`}
      minWidth={`${FIRST_REM + MEMBER_REM * (isMany ? SHOWN_PLACES : names.length)}rem`}
      none="No workload is like this."
      notes={
        <>
          {notes}
          {whole.notRead.map((problem) => (
            <p class="trouble" key={problem}>
              Whole objects of a type are not shown: {problem}
            </p>
          ))}
        </>
      }
      nothing={{
        title: "No workload has delegated pods",
        steps: "Pods without a workload are under Pods. Opt a namespace in, and say which workloads go to members:",
      }}
    />
  );
}

function inMember({ places }: WorkloadRow, member: string): boolean {
  return places.has(member);
}

/** The column of all members: those with the largest parts, and how many more. `lost`: why cells are what was last known. */
function placesColumn(lost: (member: string) => string | undefined): Column<WorkloadRow> {
  return {
    name: "Members",
    width: `${MEMBER_REM * SHOWN_PLACES}rem`,
    cell: ({ places }) => {
      const largest = [...places].sort(([, a], [, b]) => b.part - a.part);
      const texts = largest.map(([name, { text }]) => `${name} (${text}${lost(name) === undefined ? "" : ", old"})`);
      const isCut = texts.length > SHOWN_PLACES;
      return (
        <span title={texts.join(", ")}>
          {isCut && `${texts.length} members: `}
          {texts.slice(0, SHOWN_PLACES).join(", ")}
          {isCut && ", …"}
        </span>
      );
    },
    by: ({ places }) => places.size,
  };
}

/** The column of a member. `lost`: why its cells are what was last known. */
function memberColumn(member: string, lost: string | undefined): Column<WorkloadRow> {
  return {
    name: member,
    width: `${MEMBER_REM}rem`,
    cell: ({ places }) => {
      const share = places.get(member);
      if (share === undefined) return "";
      const tone = lost === undefined ? share.tone : "lost";
      return (
        <span class="share" title={lost === undefined ? share.title : `${lost}; last known: ${share.title}`}>
          <span class={tone}>
            {share.text}
            {lost !== undefined && <small> old</small>}
          </span>
          <i style={{ width: `${Math.min(1, share.part) * 100}%` }} class={tone} />
        </span>
      );
    },
    by: ({ places }) => places.get(member)?.part ?? 0,
  };
}
