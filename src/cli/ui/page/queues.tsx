import { type Context, createContext, type JSX } from "preact";
import { useContext } from "preact/hooks";
import { ageOf } from "../../../api/wording.ts";
import type { WaitingWorkload } from "../../explain/queue-waiting.ts";
import type { QueueStatus } from "../../explain/queues.ts";
import { reasonLine, reasonsOf } from "../../explain/reasons.ts";
import type { QueuesView } from "../model.ts";
import { QUEUES_COMMANDS } from "./commands.ts";
import type { Reading } from "./document.ts";
import { capital, counted } from "./format.ts";
import { Head } from "./head.tsx";
import { MemberLink } from "./links.tsx";
import { Empty, Loaded, listed, useNow } from "./parts.tsx";
import { queuesOf, quotaRows, waitingLink, waitingQueues, whyQueued } from "./queue-rows.ts";
import { linkTo } from "./route.ts";
import { Table } from "./table.tsx";

const READING: Context<Reading<QueuesView>> = createContext<Reading<QueuesView>>({});
/** Gives all views the queues, which are read once for them. */
export const QueuesProvider: typeof READING.Provider = READING.Provider;

function useQueues(): readonly QueueStatus[] {
  return useContext(READING).value?.queues ?? [];
}

/** Kueue's queues: who waits, since when, why, and what would free it. `only`: the name of one of them. */
export function Queues({ only }: { only?: string }): JSX.Element {
  return (
    <Loaded isView reading={useContext(READING)} what="the queues">
      {(view) => <All view={view} only={only} />}
    </Loaded>
  );
}

function All({ view: { queues, hidden }, only }: { view: QueuesView; only: string | undefined }): JSX.Element {
  if (queues === undefined) {
    return (
      <Empty isView title="The host has no queues">
        It does not serve Kueue.
      </Empty>
    );
  }
  const shown = only === undefined ? queues : queues.filter(({ name }) => name === only);
  const waiting = queues.reduce((sum, { pending }) => sum + pending, 0);
  const all = `${counted(queues.length, "queue")}, ${counted(waiting, "workload")} waiting`;
  return (
    <>
      <Head
        title={only ?? "Queues"}
        about={only === undefined ? all : <a href={linkTo(["queues"])}>all queues</a>}
        commands={QUEUES_COMMANDS}
      />
      {hidden !== undefined && <p class="muted">{capital(hidden)}.</p>}
      {shown.length === 0 && <p class="muted">There is no ClusterQueue{only === undefined ? "" : ` ${only}`}.</p>}
      {shown.map((queue) => (
        <Queue key={queue.name} queue={queue} />
      ))}
    </>
  );
}

function Queue({ queue }: { queue: QueueStatus }): JSX.Element {
  const { name, cohort, stopped, admitted, pending, waiting, followsMembers } = queue;
  const now = useNow();
  const rest = pending - waiting.length;
  const facts = [
    `${admitted.toLocaleString()} admitted`,
    `${pending.toLocaleString()} waiting`,
    ...(cohort === undefined ? [] : [`in cohort ${cohort}`]),
    followsMembers ? "quotas follow the members" : "quotas as written",
  ];
  return (
    <section aria-labelledby={`queue-${name}`}>
      <h2 id={`queue-${name}`}>
        <QueueLink name={name} />
      </h2>
      <p>{facts.join(", ")}</p>
      {stopped !== undefined && <p class="trouble">Admits nothing: {stopped}</p>}
      <Table
        none="It has no quotas."
        rows={quotaRows(queue)}
        keyOf={({ key }) => key}
        columns={{
          Flavor: ({ flavor }) => flavor,
          Resource: ({ resource }) => resource,
          Used: ({ used }) => used,
          Quota: ({ quota }) => quota,
          Members: ({ members }) =>
            members.length > 0 ? (
              <span>{listed(members.map((member) => <MemberLink key={member} name={member} />))}</span>
            ) : (
              ""
            ),
        }}
      />
      <Table
        none="Nothing waits."
        rows={waiting}
        keyOf={({ namespace, workload }) => `${namespace}/${workload}`}
        columns={{
          Workload: (workload) => <WaitingName of={workload} />,
          Namespace: ({ namespace }) => namespace,
          For: ({ since }) => ageOf(since, now) ?? "–",
          "What would free it": ({ waitsFor = "" }) => waitsFor,
          Why: ({ why }) => why.flatMap((message) => reasonsOf(message).map(reasonLine)).join("; "),
        }}
      />
      {waiting.length > 0 && rest > 0 && <p class="muted">{counted(rest, "more workload")} wait in it.</p>}
    </section>
  );
}

function QueueLink({ name }: { name: string }): JSX.Element {
  return <a href={linkTo(["queues", name])}>{name}</a>;
}

function WaitingName({ of }: { of: WaitingWorkload }): JSX.Element {
  const link = waitingLink(of);
  const words = `${of.kind}/${of.name}`;
  return link === undefined ? <span>{words}</span> : <a href={link}>{words}</a>;
}

/** The queues in which something waits, for the overview. Nothing where the host has no queues. */
export function QueuesThatWait(): JSX.Element | null {
  const now = useNow();
  const queues = useQueues();
  if (queues.length === 0) return null;
  return (
    <section>
      <h2>What waits in queues</h2>
      <Table
        none={`Nothing waits in ${counted(queues.length, "queue")}.`}
        rows={waitingQueues(queues)}
        keyOf={({ name }) => name}
        columns={{
          Queue: ({ name }) => <QueueLink name={name} />,
          Waiting: ({ pending }) => pending,
          Longest: ({ waiting: [first] }) => ageOf(first?.since, now) ?? "–",
          "Such as": ({ waiting: [first] }) => (first === undefined ? "–" : <WaitingName of={first} />),
          Why: (queue) => whyQueued(queue) ?? "",
        }}
      />
    </section>
  );
}

/** A member's queues as a fact of its card. Nothing if no flavor selects it. */
export function QueuesOfMember({ name }: { name: string }): JSX.Element | null {
  const names = queuesOf(name, useQueues());
  if (names.length === 0) return null;
  return (
    <>
      <dt>Queues</dt>
      <dd>{listed(names.map((queue) => <QueueLink key={queue} name={queue} />))}</dd>
    </>
  );
}
