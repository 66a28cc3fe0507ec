import type { JSX } from "preact";
import { ageOf } from "../../../api/wording.ts";
import type { MemberRow } from "../model.ts";
import { MEMBERS_COMMANDS } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import { counted } from "./format.ts";
import { useLive } from "./live.ts";
import { Awaited, Empty, ReadyBadge, UseBar, useNow } from "./parts.tsx";
import { QueuesOfMember } from "./queues.tsx";
import { linkTo } from "./route.ts";

/** All members, each with its room. */
export function MembersView(): JSX.Element {
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
