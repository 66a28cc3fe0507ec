import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { NamedService } from "../model.ts";
import { counted } from "./format.ts";
import { findAll } from "./found.ts";
import { Head } from "./head.tsx";
import { useLive } from "./live.ts";
import { Awaited, Empty, useReading } from "./parts.tsx";
import { linkTo, type Route } from "./route.ts";
import { Table } from "./table.tsx";

const MOST_ROWS = 200;
const SERVICES_EVERY_MS = 30_000;
const NO_SERVICES: readonly NamedService[] = [];

/** The search over everything, in the navigation. Each letter changes the address of the results. */
export function FindField({ route }: { route: Route }): JSX.Element {
  return (
    <input
      type="search"
      class="find"
      placeholder="Find anything"
      aria-label="Find anything"
      value={route.path[0] === "find" ? (route.query.get("q") ?? "") : ""}
      onInput={({ currentTarget: { value } }) => {
        const link = linkTo(["find"], { q: value });
        // One entry of the browser's history for a search.
        if (route.path[0] === "find") location.replace(link);
        else location.hash = link;
      }}
    />
  );
}

/** All members, namespaces, nodes, workloads, Services, whole objects and pods that a search finds. */
export function FindPage({ route }: { route: Route }): JSX.Element {
  const { members = [], pods, workloads, version, whole, isComplete } = useLive();
  const { value: services = NO_SERVICES, problem } = useReading<readonly NamedService[]>(
    "/api/services",
    SERVICES_EVERY_MS,
  );
  const q = route.query.get("q") ?? "";
  const found = useMemo(
    () => findAll({ members, pods: pods.values(), workloads: workloads.list(), services, objects: whole.rows }, q),
    [version, members, services, whole, q],
  );
  const unsearched = problem !== undefined && <p class="muted">Services are not among them: {problem}</p>;
  if (q.trim() === "") return <Empty isView title="Write a part of a name in “Find anything”" />;
  if (found.length === 0 && !isComplete) return <Awaited what="the names" />;
  if (found.length === 0) {
    return (
      <Empty isView title={`Nothing is named like “${q}”`}>
        Searched: members, namespaces, nodes, workloads, Services, whole objects and delegated pods.
        {unsearched}
      </Empty>
    );
  }
  const rest = found.length > MOST_ROWS ? `, of which ${MOST_ROWS} are shown` : "";
  return (
    <>
      <Head
        title="Found"
        about={<span aria-live="polite">{`${counted(found.length, "name")} like “${q}”${rest}`}</span>}
      />
      {unsearched}
      <Table
        rows={found.slice(0, MOST_ROWS)}
        keyOf={({ link }) => link}
        columns={{
          What: ({ kind }) => kind,
          In: ({ within }) => within || "–",
          Name: ({ name, link }) => <a href={link}>{name}</a>,
        }}
      />
    </>
  );
}
