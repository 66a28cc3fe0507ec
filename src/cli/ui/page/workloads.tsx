import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { JobRow } from "../model.ts";
import { podsCommands } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import { Filters } from "./filters.tsx";
import { counted } from "./format.ts";
import { wordsOf } from "./found.ts";
import { whyLost } from "./freshness.ts";
import { Cut, NamespaceLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Awaited, NothingDelegated, useReading } from "./parts.tsx";
import { changeQuery, linkTo, type Route } from "./route.ts";
import { type Column, ordered, orderOf, Rows } from "./rows.tsx";
import { byKey, jobWorkloads, type WorkloadRow, wholeWorkload } from "./workload-rows.ts";

const FIRST: readonly Column<WorkloadRow>[] = [
  {
    name: "Workload",
    width: "14rem",
    cell: ({ link, kind, name, isWhole }) => (
      <span>
        <a href={link} title={`${kind}/${name}`} aria-label={`${kind}/${name}`} class="cut">
          <Cut name={`${kind}/${name}`} />
        </a>
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
  {
    name: "Why",
    width: "12rem",
    cell: ({ why }) => <span title={why}>{why ?? ""}</span>,
    by: ({ why }) => why ?? "~",
  },
];
// Members with a column of their own; more than these share one.
const MOST_COLUMNS = 12;
const SHOWN_PLACES = 3;
// With three members the table fits a window of 1280 pixels.
const FIRST_REM = 49;
const MEMBER_REM = 8;
const JOBS_EVERY_MS = 15_000;
const NO_JOBS: readonly JobRow[] = [];

/** Reads finished Jobs and CronJobs, which have no pods that the page follows. */
export function useJobs(): { readonly jobs: readonly JobRow[]; readonly problem: string | undefined } {
  const { value, problem } = useReading<readonly JobRow[]>("/api/jobs", undefined, JOBS_EVERY_MS);
  return { jobs: value ?? NO_JOBS, problem };
}

/** All workloads with delegated pods and all whole objects, and what each member has of them. */
export function Workloads({ route }: { route: Route }): JSX.Element {
  const { workloads, version, isComplete, whole, members } = useLive();
  const { q = "", namespace = "", member = "", sort = "" } = Object.fromEntries(route.query);
  const { jobs, problem } = useJobs();
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
  const order = orderOf(sort);
  const shown = useMemo(() => {
    const words = wordsOf(q);
    const matching = all.filter((row) => {
      const { key, isWhole } = row;
      if (namespace !== "" && row.namespace !== namespace) return false;
      if (member !== "" && !row.places.has(member)) return false;
      const text = `${key}${isWhole ? " whole" : ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return ordered(matching, columns, order);
  }, [all, q, namespace, member, sort, columns]);
  if (!isComplete && all.length === 0) return <Awaited what="the workloads" />;
  return (
    <div class="fill">
      <header class="view-head">
        <h1>Workloads</h1>
        <p>{isComplete ? counted(shown.length, "workload") : "still reading…"}</p>
        <Filters
          route={route}
          filters={[
            { name: "namespace", of: [...new Set(all.map((row) => row.namespace))].filter(Boolean).sort() },
            ...(isMany ? [{ name: "member", of: names }] : []),
          ]}
        />
        <CopyButtons commands={podsCommands(namespace || undefined)} />
      </header>
      {problem !== undefined && <p class="trouble">Finished Jobs and CronJobs are not shown: {problem}</p>}
      {whole.notRead.map((problem) => (
        <p class="trouble" key={problem}>
          Whole objects of a type are not shown: {problem}
        </p>
      ))}
      {isComplete && all.length === 0 ? (
        <NothingDelegated
          title="No workload has delegated pods"
          steps="Pods without a workload are under Pods. Opt a namespace in, and say which workloads go to members:"
        />
      ) : (
        <Rows
          label="Workloads"
          columns={columns}
          rows={shown}
          keyOf={({ key, isWhole }) => `${key}${isWhole}`}
          order={order}
          none={{ words: "No workload is like this.", link: linkTo(["workloads"]) }}
          onOrder={(sorted) => changeQuery(route, { sort: sorted })}
          minWidth={`${FIRST_REM + MEMBER_REM * (isMany ? SHOWN_PLACES : names.length)}rem`}
        />
      )}
    </div>
  );
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
