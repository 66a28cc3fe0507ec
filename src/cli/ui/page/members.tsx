import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ageOf, amountText } from "../../../api/wording.ts";
import type { MemberRow } from "../model.ts";
import { MEMBERS_COMMANDS } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import { Filters } from "./filters.tsx";
import { counted } from "./format.ts";
import { wordsOf } from "./found.ts";
import { Cut } from "./links.tsx";
import { useLive } from "./live.ts";
import { Awaited, Empty, ReadyBadge, UseBar, useNow } from "./parts.tsx";
import { QueuesOfMember } from "./queues.tsx";
import { changeQuery, linkTo, type Route } from "./route.ts";
import { type Column, ordered, orderOf, Rows } from "./rows.tsx";
import { memberState } from "./summary.ts";

// Beyond these a table is easier to read, and faster.
const MOST_CARDS = 24;

/** All members, each with its room: some as cards, many as a table. */
export function MembersView({ route }: { route: Route }): JSX.Element {
  const { members, hidden } = useLive();
  if (hidden.members) return <Empty isView title="You may not see the members" />;
  if (members === undefined) return <Awaited what="the members" />;
  if (members.length === 0) {
    return (
      <Empty isView title="No member has joined yet">
        <p>Join the first one, and its room and pods appear here:</p>
        <pre>legation join west --member-kubeconfig west.yaml</pre>
      </Empty>
    );
  }
  if (members.length > MOST_CARDS) return <MemberTable route={route} members={members} />;
  const troubled = members.filter(({ ready }) => ready !== "True").length;
  return (
    <>
      <header class="view-head">
        <h1>Members</h1>
        <p>
          {counted(members.length, "member")}
          {troubled > 0 && <strong class="bad">, {troubled} not ready</strong>}
        </p>
        <ul class="legend" aria-label="Colours of the bars">
          <li>
            <i class="swatch ours" /> this host's pods
          </li>
          <li>
            <i class="swatch others" /> others' pods
          </li>
          <li>
            <i class="swatch" /> free
          </li>
        </ul>
        <CopyButtons commands={MEMBERS_COMMANDS} />
      </header>
      <div class="cards">
        {members.map((member) => (
          <Member key={member.name} {...member} />
        ))}
      </div>
    </>
  );
}

const STATES = ["not ready", "cordoned", "ready"] as const;

const COLUMNS: readonly Column<MemberRow>[] = [
  {
    name: "Member",
    width: "15%",
    cell: ({ name }) => (
      <a href={linkTo(["members", name])} title={name} aria-label={name} class="cut">
        <Cut name={name} />
      </a>
    ),
    by: ({ name }) => name,
  },
  {
    name: "State",
    width: "11rem",
    cell: ({ ready, isCordoned }) => <ReadyBadge ready={ready} isCordoned={isCordoned} />,
    by: (row) => STATES.indexOf(memberState(row)),
  },
  {
    name: "Why",
    width: "21%",
    cell: ({ reason }) => <span title={reason}>{reason ?? ""}</span>,
    by: ({ reason }) => reason ?? "~",
  },
  { name: "Version", width: "6rem", cell: ({ version }) => version ?? "–", by: ({ version }) => version ?? "" },
  { name: "Nodes", width: "5rem", cell: ({ nodes }) => nodes ?? "–", by: ({ nodes }) => nodes ?? 0 },
  {
    name: "Pods",
    width: "6.5rem",
    cell: ({ name, pods: { running, unfinished } }) => (
      <a href={linkTo(["pods"], { member: name })} title={`${running} running of ${unfinished}`}>
        {running} of {unfinished}
      </a>
    ),
    by: ({ pods }) => pods.unfinished,
  },
  roomColumn("cpu", "CPU free", "8rem"),
  roomColumn("memory", "Memory free", "10rem"),
  {
    name: "Labels",
    width: "21%",
    cell: (row) => {
      const text = labelsOf(row).join(", ");
      return <span title={text}>{text}</span>;
    },
  },
];

/** The room that all pods leave of a resource, sorted by its part of the whole. */
function roomColumn(resource: string, name: string, width: string): Column<MemberRow> {
  const roomOf = ({ use }: MemberRow): { readonly free: number; readonly of: number } | undefined => {
    const found = use.find((each) => each.resource === resource);
    if (found === undefined) return undefined;
    return { free: Math.max(0, found.allocatable - found.ours - found.others), of: found.allocatable };
  };
  return {
    name,
    width,
    cell: (row) => {
      const room = roomOf(row);
      return room === undefined ? "–" : `${amountText(resource, room.free)} of ${amountText(resource, room.of)}`;
    },
    by: (row) => {
      const { free = 0, of = 0 } = roomOf(row) ?? {};
      return of === 0 ? -1 : free / of;
    },
  };
}

function labelsOf({ labels, taints }: MemberRow): string[] {
  return [...Object.entries(labels).map(([key, value]) => `${key}=${value}`), ...taints];
}

/** Many members, filtered, searched and sorted as the address says; by default those with trouble first. */
function MemberTable({ route, members }: { route: Route; members: readonly MemberRow[] }): JSX.Element {
  const { q = "", state = "", label = "", sort = "State" } = Object.fromEntries(route.query);
  const order = orderOf(sort);
  const shown = useMemo(() => {
    const words = wordsOf(q);
    const matching = members.filter((row) => {
      const labels = labelsOf(row);
      if ((state !== "" && memberState(row) !== state) || (label !== "" && !labels.includes(label))) return false;
      const text = `${row.name} ${row.version} ${row.reason ?? ""} ${labels.join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return ordered(matching, COLUMNS, order);
  }, [members, q, state, label, sort]);
  const labels = useMemo(() => sharedLabels(members), [members]);
  const count = (wanted: string): number => members.filter((row) => memberState(row) === wanted).length;
  return (
    <div class="fill">
      <header class="view-head">
        <h1>Members</h1>
        <p aria-live="polite">
          {shown.length < members.length && `${shown.length.toLocaleString()} of `}
          {counted(members.length, "member")}
          {count("not ready") > 0 && <strong class="bad">, {count("not ready")} not ready</strong>}
          {count("cordoned") > 0 && `, ${count("cordoned")} cordoned`}
        </p>
        <Filters
          route={route}
          filters={[
            { name: "state", of: STATES },
            { name: "label", of: labels },
          ]}
        />
        <CopyButtons commands={MEMBERS_COMMANDS} />
      </header>
      <Rows
        label="Members"
        columns={COLUMNS}
        rows={shown}
        keyOf={({ name }) => name}
        order={order}
        none={{ words: "No member is like this.", link: linkTo(["members"]) }}
        onOrder={(sorted) => changeQuery(route, { sort: sorted })}
        minWidth="70rem"
      />
    </div>
  );
}

/** Returns labels and taints that some members have in common and others lack, in their order. */
function sharedLabels(members: readonly MemberRow[]): string[] {
  const counts = new Map<string, number>();
  for (const label of members.flatMap(labelsOf)) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > 1 && count < members.length)
    .map(([label]) => label)
    .sort();
}

const REACHED = { Agent: "by its agent", Direct: "directly", Unknown: "–" };

/** A member as a card. */
export function Member(member: MemberRow): JSX.Element {
  const now = useNow();
  const isReady = member.ready === "True";
  const labels = Object.entries(member.labels);
  return (
    <article class={`card ${isReady ? "" : "not-ready"}`} aria-labelledby={`member-${member.name}`}>
      <header>
        <h2 id={`member-${member.name}`}>
          <a href={linkTo(["members", member.name])}>{member.name}</a>
        </h2>
        <ReadyBadge ready={member.ready} isCordoned={member.isCordoned} />
      </header>
      {member.reason !== undefined && (
        <p class="trouble" role="status">
          {member.reason}
          {!isReady && member.since !== undefined && <small> since {ageOf(member.since, now)}</small>}
        </p>
      )}
      <dl class="facts">
        <dt>Version</dt>
        <dd>{member.version ?? "–"}</dd>
        <dt>Nodes</dt>
        <dd>{member.nodes ?? "–"}</dd>
        <dt>Reached</dt>
        <dd title={member.server}>{REACHED[member.connection ?? "Unknown"]}</dd>
        <dt>Pods</dt>
        <dd>
          <a href={linkTo(["pods"], { member: member.name })}>
            {member.pods.running} running of {member.pods.unfinished}
          </a>
        </dd>
        <QueuesOfMember name={member.name} />
        <dt>Joined</dt>
        <dd>{ageOf(member.created, now) ?? "–"} ago</dd>
      </dl>
      {member.use.length === 0 ? (
        <p class="muted">Its nodes have not been read.</p>
      ) : (
        member.use.map((use) => <UseBar key={use.resource} {...use} />)
      )}
      {labels.length + member.taints.length > 0 && (
        <ul class="chips" aria-label={`Labels and taints of ${member.name}`}>
          {labels.map(([key, value]) => (
            <li key={key}>
              {key}={value}
            </li>
          ))}
          {member.taints.map((taint) => (
            <li key={taint} class="taint">
              {taint}
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}
