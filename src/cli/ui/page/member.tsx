import type { JSX } from "preact";
import { ageOf, amountText } from "../../../api/wording.ts";
import type { MemberPageView } from "../model.ts";
import { memberCommands } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import { counted } from "./format.ts";
import { NodeLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Member } from "./members.tsx";
import { Events, Loaded, ReadyBadge, Table, Troubles, useNow, useReading } from "./parts.tsx";
import { ObjectList, PodList } from "./pod-list.tsx";
import { reachedWords } from "./reached.ts";

const READ_EVERY_MS = 15_000;

/** The view of a member: what is wrong, its nodes with their room, its pods, copies and events, and how it is reached. */
export function MemberPage({ name }: { name: string }): JSX.Element {
  const { members, pods, whole } = useLive();
  const row = members?.find((each) => each.name === name);
  const reading = useReading<MemberPageView>(`/api/members/${encodeURIComponent(name)}`, row?.ready, READ_EVERY_MS);
  const own = [...pods.values()].filter(({ member }) => member === name);
  // A trouble below tells the reason, with its time and remedy.
  const reason = (reading.value?.troubles.length ?? 0) === 0 ? row?.reason : undefined;
  const copies = whole.rows.filter((object) => object.members.some(({ member }) => member === name));
  return (
    <>
      <header class="view-head">
        <h1>{name}</h1>
        <p>member, {counted(own.length, "pod")} of this host</p>
        <CopyButtons name={name} commands={memberCommands(name)} />
      </header>
      {row !== undefined && (
        <div class="cards">
          <Member {...row} reason={reason} />
        </div>
      )}
      <Loaded reading={reading} what="the member">
        {(value) => <Details value={value} />}
      </Loaded>
      <h2>Pods of this host</h2>
      <PodList pods={own} query={{ member: name }} />
      <h2>Copies</h2>
      <ObjectList objects={copies} />
    </>
  );
}

function Details({ value }: { value: MemberPageView }): JSX.Element {
  const now = useNow();
  const { name, troubles, conditions, events, nodes, nodesNotRead } = value;
  const isTold = (message: string): boolean => troubles.some(({ what }) => what.includes(message));
  return (
    <>
      <Troubles of={troubles} />
      <h2>Nodes</h2>
      {nodesNotRead !== undefined && <p class="muted">Not shown: {nodesNotRead}</p>}
      {nodes !== undefined && (
        <Table
          columns={["Node", "State", "Pods", "Room"]}
          none="It has no nodes."
          rows={nodes.map((node) => ({
            key: node.name,
            cells: [
              <NodeLink member={name} name={node.name} key="node" />,
              <ReadyBadge ready={node.isReady ? "True" : "False"} isCordoned={node.isCordoned} key="state" />,
              node.pods,
              node.room
                .map(({ resource, free, allocatable }) => {
                  return `${resource}: ${amountText(resource, free)} free of ${amountText(resource, allocatable)}`;
                })
                .join(", "),
            ],
          }))}
        />
      )}
      <h2>How it is reached</h2>
      <ul class="plain">
        {reachedWords(value, now).map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <Table
        columns={["Condition", "Status", "Since", "Message"]}
        none="No controller has reported on it."
        rows={conditions.map(({ type, status, since, message }) => ({
          key: type,
          cells: [type, status, ageOf(since, now) ?? "–", isTold(message) ? "as above" : message],
        }))}
      />
      <h2>Events</h2>
      {events === undefined ? (
        <p class="muted">You may not list events in the namespace default.</p>
      ) : events.length === 0 ? (
        <p class="muted">None of its Cluster. API servers keep events for an hour by default.</p>
      ) : (
        <Events of={events} />
      )}
    </>
  );
}
