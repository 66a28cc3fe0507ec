import type { JSX } from "preact";
import { ageOf, amountText } from "../../../api/wording.ts";
import type { MemberPageView } from "../model.ts";
import { memberCommands } from "./commands.ts";
import { apiPath } from "./document.ts";
import { counted } from "./format.ts";
import { Head } from "./head.tsx";
import { NodeLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Member } from "./members.tsx";
import { Loaded, ReadyBadge, Troubles, useNow, useReading } from "./parts.tsx";
import { ObjectList, PodList } from "./pod-list.tsx";
import { reachedWords } from "./reached.ts";
import { Events, Table } from "./table.tsx";

const READ_EVERY_MS = 15_000;

/** The view of a member: what is wrong, its nodes with their room, its pods, copies and events, and how it is reached. */
export function MemberPage({ name }: { name: string }): JSX.Element {
  const { members, pods, whole } = useLive();
  const row = members?.find((each) => each.name === name);
  const reading = useReading<MemberPageView>(apiPath("members", name), READ_EVERY_MS, row?.ready);
  const own = [...pods.values()].filter(({ member }) => member === name);
  // A trouble below tells the reason, with its time and remedy.
  const reason = (reading.value?.troubles.length ?? 0) === 0 ? row?.reason : undefined;
  const copies = whole.rows.filter((object) => object.members.some(({ member }) => member === name));
  return (
    <>
      <Head
        title={name}
        about={`member, ${counted(own.length, "pod")} of this host`}
        name={name}
        commands={memberCommands(name)}
      />
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
          none="It has no nodes."
          rows={nodes}
          keyOf={(node) => node.name}
          columns={{
            Node: (node) => <NodeLink member={name} name={node.name} />,
            State: ({ isReady, isCordoned }) => (
              <ReadyBadge ready={isReady ? "True" : "False"} isCordoned={isCordoned} />
            ),
            Pods: ({ pods }) => pods,
            Room: ({ room }) =>
              room
                .map(({ resource, free, allocatable }) => {
                  return `${resource}: ${amountText(resource, free)} free of ${amountText(resource, allocatable)}`;
                })
                .join(", "),
          }}
        />
      )}
      <h2>How it is reached</h2>
      <ul class="plain">
        {reachedWords(value, now).map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <Table
        none="No controller has reported on it."
        rows={conditions}
        keyOf={({ type }) => type}
        columns={{
          Condition: ({ type }) => type,
          Status: ({ status }) => status,
          Since: ({ since }) => ageOf(since, now) ?? "–",
          Message: ({ message }) => (isTold(message) ? "as above" : message),
        }}
      />
      <h2>Events</h2>
      {events === undefined ? (
        <p class="muted">You may not list events in the namespace default.</p>
      ) : (
        <Events of={events} none="None of its Cluster. API servers keep events for an hour by default." />
      )}
    </>
  );
}
