import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ageOf, amountText } from "../../../api/wording.ts";
import type { MemberRow, ResourceUse } from "../model.ts";
import { MEMBERS_COMMANDS } from "./commands.ts";
import { counted } from "./format.ts";
import { Head } from "./head.tsx";
import { NameLink } from "./links.tsx";
import { Listing } from "./listing.tsx";
import { useLive } from "./live.ts";
import { Awaited, Empty, ReadyBadge, useNow } from "./parts.tsx";
import { QueuesOfMember } from "./queues.tsx";
import { linkTo, type Route } from "./route.ts";
import type { Column } from "./rows.tsx";
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
  return (
    <>
      <Head title="Members" about={<Count of={members} />} commands={MEMBERS_COMMANDS}>
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
      </Head>
      <div class="cards">
        {members.map((member) => (
          <Member key={member.name} {...member} />
        ))}
      </div>
    </>
  );
}

/** Tells how many members there are, and how many take no pods. */
function Count({ of }: { of: readonly MemberRow[] }): JSX.Element {
  const count = (state: string): number => of.filter((row) => memberState(row) === state).length;
  const [notReady, cordoned] = [count("not ready"), count("cordoned")];
  return (
    <>
      {counted(of.length, "member")}
      {notReady > 0 && <strong class="bad">, {notReady} not ready</strong>}
      {cordoned > 0 && `, ${cordoned} cordoned`}
    </>
  );
}

const STATES = ["not ready", "cordoned", "ready"] as const;

const COLUMNS: readonly Column<MemberRow>[] = [
  {
    name: "Member",
    width: "15%",
    cell: ({ name }) => <NameLink href={linkTo(["members", name])} name={name} />,
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
    cell: ({ reason }) => <span title={reason}>{reason}</span>,
    by: ({ reason = "~" }) => reason,
  },
  { name: "Version", width: "6rem", cell: ({ version }) => version ?? "–", by: ({ version = "" }) => version },
  { name: "Nodes", width: "5rem", cell: ({ nodes }) => nodes ?? "–", by: ({ nodes = 0 }) => nodes },
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
    cell: (row) => <span title={labelsOf(row)}>{labelsOf(row)}</span>,
    by: labelsOf,
  },
];

/** The room that all pods leave of a resource, sorted by its part of the whole. */
function roomColumn(resource: string, name: string, width: string): Column<MemberRow> {
  const useOf = ({ use }: MemberRow): ResourceUse | undefined => use.find((each) => each.resource === resource);
  return {
    name,
    width,
    cell: (row) => {
      const use = useOf(row);
      return use === undefined
        ? "–"
        : `${amountText(resource, freeOf(use))} of ${amountText(resource, use.allocatable)}`;
    },
    by: (row) => {
      const use = useOf(row);
      return use === undefined || use.allocatable === 0 ? -1 : freeOf(use) / use.allocatable;
    },
  };
}

function freeOf({ allocatable, ours, others }: ResourceUse): number {
  return Math.max(0, allocatable - ours - others);
}

function listedLabels({ labels, taints }: MemberRow): string[] {
  return [...Object.entries(labels).map(([key, value]) => `${key}=${value}`), ...taints];
}

function labelsOf(row: MemberRow): string {
  return listedLabels(row).join(", ");
}

/** Many members; those with trouble come first. */
function MemberTable({ route, members }: { route: Route; members: readonly MemberRow[] }): JSX.Element {
  const labels = useMemo(() => sharedLabels(members), [members]);
  return (
    <Listing
      route={route}
      title="Members"
      about={(shown) => (
        <>
          {shown < members.length && `${shown.toLocaleString()} of `}
          <Count of={members} />
        </>
      )}
      commands={MEMBERS_COMMANDS}
      rows={members}
      keyOf={({ name }) => name}
      columns={COLUMNS}
      filters={[
        { name: "state", of: STATES, has: (row, value) => memberState(row) === value },
        { name: "label", of: labels, has: (row, value) => listedLabels(row).includes(value) },
      ]}
      textOf={(row) => `${row.name} ${row.version} ${row.reason ?? ""} ${labelsOf(row)}`}
      sort="State"
      minWidth="70rem"
      none="No member is like this."
    />
  );
}

/** Returns labels and taints that some members have in common and others lack, in their order. */
function sharedLabels(members: readonly MemberRow[]): string[] {
  const counts = new Map<string, number>();
  for (const label of members.flatMap(listedLabels)) counts.set(label, (counts.get(label) ?? 0) + 1);
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

/** A member's resource: used by this host, used by others, free. */
function UseBar(use: ResourceUse): JSX.Element {
  const { resource, allocatable, ours, others } = use;
  const part = (value: number): number => (allocatable > 0 ? Math.min(100, (value / allocatable) * 100) : 0);
  const oursPart = part(ours);
  const othersPart = Math.min(100 - oursPart, part(others));
  const free = freeOf(use);
  const text = `${amountText(resource, ours)} of this host, ${amountText(resource, others)} of others, ${amountText(resource, free)} free`;
  return (
    <div class="use">
      <div class="use-names">
        <span>{resource}</span>
        <span class="use-free">
          <b>{amountText(resource, free)}</b> free of {amountText(resource, allocatable)}
        </span>
      </div>
      <div class="bar" role="img" aria-label={`${resource}: ${text}`} title={text}>
        <i class="ours" style={{ width: `${oursPart}%` }} />
        <i class="others" style={{ width: `${othersPart}%` }} />
      </div>
    </div>
  );
}
