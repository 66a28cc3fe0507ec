import { type Context, createContext, type JSX } from "preact";
import { useContext } from "preact/hooks";
import { ageOf } from "../../../api/wording.ts";
import type { WaitingWorkload } from "../../explain/queue-waiting.ts";
import type { QueueStatus } from "../../explain/queues.ts";
import { reasonLine, reasonsOf } from "../../explain/reasons.ts";
import type { QueuesView } from "../model.ts";
import { QUEUES_COMMANDS } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import type { Reading } from "./document.ts";
import { capital, counted } from "./format.ts";
import { MemberLink } from "./links.tsx";
import { Empty, Listed, Loaded, Table, useNow } from "./parts.tsx";
import { queuesOf, quotaRows, waitingLink, waitingQueues, whyQueued } from "./queue-rows.ts";
import { linkTo } from "./route.ts";

const READING: Context<Reading<QueuesView>> = createContext<Reading<QueuesView>>({});
/** Gives all views the queues, which are read once for them. */
export const QueuesProvider: typeof READING.Provider = READING.Provider;

function useQueues(): readonly QueueStatus[] {
  return useContext(READING).value?.queues ?? [];
}

/** Kueue's queues: who waits, since when, why, and what would free it. `only`: the name of one of them. */
export function Queues({ only }: { only: string | undefined }): JSX.Element {
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
  return (
    <>
      <header class="view-head">
        <h1>{only ?? "Queues"}</h1>
        <p>
          {only === undefined ? (
            `${counted(queues.length, "queue")}, ${counted(waiting, "workload")} waiting`
          ) : (
            <a href={linkTo(["queues"])}>all queues</a>
          )}
        </p>
        <CopyButtons commands={QUEUES_COMMANDS} />
      </header>
      {hidden !== undefined && <p class="muted">{capital(hidden)}.</p>}
      {shown.length === 0 && (
        <p class="muted">{only === undefined ? "There is no ClusterQueue." : `There is no ClusterQueue ${only}.`}</p>
      )}
      {shown.map((queue) => (
        <Queue key={queue.name} queue={queue} />
      ))}
    </>
  );
}

function Queue({ queue }: { queue: QueueStatus }): JSX.Element {
  const { name, cohort, stopped, admitted, pending, waiting, followsMembers } = queue;
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
        columns={["Flavor", "Resource", "Used", "Quota", "Members"]}
        none="It has no quotas."
        rows={quotaRows(queue).map(({ key, flavor, members, resource, used, quota }) => ({
          key,
          cells: [
            flavor,
            resource,
            used,
            quota,
            members.length === 0 ? (
              ""
            ) : (
              <Listed
                key="members"
                items={members.map((member) => [member, <MemberLink key={member} name={member} />])}
              />
            ),
          ],
        }))}
      />
      <Waiting of={waiting} />
      {waiting.length > 0 && rest > 0 && <p class="muted">{counted(rest, "more workload")} wait in it.</p>}
    </section>
  );
}

function QueueLink({ name }: { name: string }): JSX.Element {
  return <a href={linkTo(["queues", name])}>{name}</a>;
}

function Waiting({ of }: { of: readonly WaitingWorkload[] }): JSX.Element {
  const now = useNow();
  return (
    <Table
      columns={["Workload", "Namespace", "For", "What would free it", "Why"]}
      none="Nothing waits."
      rows={of.map((workload) => ({
        key: `${workload.namespace}/${workload.workload}`,
        cells: [
          <WaitingName key="workload" of={workload} />,
          workload.namespace,
          ageOf(workload.since, now) ?? "–",
          workload.waitsFor ?? "",
          workload.why.flatMap((message) => reasonsOf(message).map(reasonLine)).join("; "),
        ],
      }))}
    />
  );
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
        columns={["Queue", "Waiting", "Longest", "Such as", "Why"]}
        none={`Nothing waits in ${counted(queues.length, "queue")}.`}
        rows={waitingQueues(queues).map((queue) => {
          const [first] = queue.waiting;
          return {
            key: queue.name,
            cells: [
              <QueueLink key="queue" name={queue.name} />,
              queue.pending,
              ageOf(first?.since ?? "", now) ?? "–",
              first === undefined ? "–" : <WaitingName key="workload" of={first} />,
              whyQueued(queue) ?? "",
            ],
          };
        })}
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
      <dd>
        <Listed items={names.map((queue) => [queue, <QueueLink key={queue} name={queue} />])} />
      </dd>
    </>
  );
}
