import type { JSX } from "preact";
import { age, ageOf } from "../../../api/wording.ts";
import type { MemberRow, PodRow, WarningRow } from "../model.ts";
import { counted } from "./format.ts";
import { Head } from "./head.tsx";
import { MemberLink, PodLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Awaited, Loaded, listed, ReadyBadge, Time, useNow, useReading } from "./parts.tsx";
import { QueuesThatWait } from "./queues.tsx";
import { TURNS } from "./rates.ts";
import { linkTo } from "./route.ts";
import { byReason, ofShown, troubled, waitingCopies } from "./summary.ts";
import { Table } from "./table.tsx";
import { podWorkloads, wholeLink } from "./workload-rows.ts";

const WARNINGS_EVERY_MS = 30_000;
const MOST_ROWS = 12;

/** The first view: what is wrong, what waits and why, what moves, and how fast. */
export function Overview(): JSX.Element {
  const { members, hidden, pods, whole, isComplete } = useLive();
  if (members === undefined && !hidden.members) return <Awaited what="the overview" />;
  const awaited = isComplete || pods.size > 0 ? undefined : "the pods are still being read…";
  const all = [...pods.values()];
  const running = all.filter(({ state }) => state === "running").length;
  const copies = waitingCopies(whole.rows);
  return (
    <>
      <Head
        title="Overview"
        about={
          <>
            {members !== undefined && `${counted(members.length, "member")}, `}
            {awaited ?? `${counted(all.length, "pod")}, ${running.toLocaleString()} running`}
          </>
        }
      />
      <section>
        <h2>Members with trouble</h2>
        {members === undefined ? <p class="muted">You may not see the members.</p> : <Troubled of={members} />}
      </section>
      <section>
        <h2>What waits, and why</h2>
        <Groups pods={all} state="waiting" none={copies.length > 0 ? "" : (awaited ?? "Nothing waits.")} />
        {copies.length > 0 && (
          <Table
            rows={copies.slice(0, MOST_ROWS)}
            keyOf={({ object, member }) => `${object.uid} ${member}`}
            columns={{
              Object: ({ object }) => (
                <a href={wholeLink(object)}>
                  {object.kind}/{object.name}
                </a>
              ),
              Member: ({ member }) => <MemberLink name={member} />,
              Why: ({ why }) => why,
            }}
          />
        )}
      </section>
      <QueuesThatWait />
      <section>
        <h2>What fails</h2>
        <Groups pods={all} state="failed" none={awaited ?? "Nothing fails."} />
      </section>
      <section>
        <h2>What moves</h2>
        <Moving />
        <Pace />
      </section>
      <section>
        <h2>Recent warnings</h2>
        <Warnings />
      </section>
    </>
  );
}

function Troubled({ of }: { of: readonly MemberRow[] }): JSX.Element {
  const now = useNow();
  const bad = troubled(of);
  return (
    <>
      <Table
        none={of.length === 0 ? "No member has joined yet." : `None: ${counted(of.length, "member")} ready.`}
        rows={bad.slice(0, MOST_ROWS)}
        keyOf={({ name }) => name}
        columns={{
          Member: ({ name }) => <MemberLink name={name} />,
          State: ({ ready, isCordoned }) => <ReadyBadge ready={ready} isCordoned={isCordoned} />,
          Since: ({ ready, since }) => (ready === "True" ? "–" : (ageOf(since, now) ?? "–")),
          Why: ({ reason = "" }) => reason,
        }}
      />
      {bad.length > MOST_ROWS && (
        <p>
          <a href={linkTo(["members"], { sort: "State" })}>All {counted(bad.length, "member")} with trouble</a>
        </p>
      )}
    </>
  );
}

/** The pods of a state by their reasons. `none`: words for no pods. */
function Groups({
  pods: all,
  state,
  none,
}: {
  pods: readonly PodRow[];
  state: "waiting" | "failed";
  none: string;
}): JSX.Element {
  const now = useNow();
  const groups = byReason(all, [state], useLive().members);
  if (groups.length === 0) return <>{none !== "" && <p class="muted">{none}</p>}</>;
  return (
    <>
      <Table
        rows={groups.slice(0, MOST_ROWS)}
        keyOf={({ why }) => why}
        columns={{
          Pods: ({ pods }) => pods.length.toLocaleString(),
          Oldest: ({ since }) => ageOf(since, now) ?? "–",
          "Such as": ({ pods: [first] }) => first && <PodLink {...first} />,
          Why: ({ why, pods: [first] }) => <span title={first?.why}>{why}</span>,
        }}
      />
      <p>
        <a href={linkTo(["pods"], { state })}>All pods that are {state}</a>
      </p>
    </>
  );
}

function Moving(): JSX.Element {
  const { pods, whole } = useLive();
  const all = [...pods.values()];
  const starting = all.filter(({ state }) => state === "starting");
  const ending = all.filter(({ state }) => state === "ending");
  const copies = whole.rows.flatMap(({ members }) => members.filter(({ tone }) => tone === "ending")).length;
  const leaving = podWorkloads(ending).slice(0, MOST_ROWS);
  return (
    <p>
      <a href={linkTo(["pods"], { state: "starting" })}>{counted(starting.length, "pod")} starting</a>,{" "}
      <a href={linkTo(["pods"], { state: "ending" })}>{counted(ending.length, "pod")} ending</a>
      {copies > 0 && `, ${counted(copies, "copy", "copies")} leaving a member`}
      {leaving.length > 0 && " of "}
      {listed(
        leaving.map(({ key, link, kind, name }) => (
          <a key={key} href={link}>
            {kind}/{name}
          </a>
        )),
      )}
      .
    </p>
  );
}

// Nothing is told by the first moments.
const FIRST_COUNTS_MS = 5_000;

/** What became of pods since the page was opened, at most in the last five minutes. */
function Pace(): JSX.Element {
  const { ms, of } = useLive().rates.counts(useNow());
  if (ms < FIRST_COUNTS_MS) return <p class="muted">Counted from now on.</p>;
  const perMinute = (count: number): string => (ms < 60_000 ? "" : ` (${Math.round((count / ms) * 600_000) / 10}/min)`);
  return (
    <p class="muted">
      In the last {age(ms)}: {TURNS.map((turn) => `${of[turn]} ${turn}${perMinute(of[turn])}`).join(", ")}.
    </p>
  );
}

function Warnings(): JSX.Element {
  const { pods, whole } = useLive();
  const reading = useReading<readonly WarningRow[]>("/api/warnings", WARNINGS_EVERY_MS);
  return (
    <Loaded reading={reading} what="the warnings">
      {(all) => (
        <Table
          none="None of what is shown here."
          rows={ofShown(all, pods.values(), whole.rows).slice(0, MOST_ROWS)}
          keyOf={(row) => Object.values(row).join(" ")}
          columns={{
            Time: ({ at }) => <Time at={at} />,
            Object: ({ kind, namespace, name }) => {
              if (kind === "Pod") return <PodLink namespace={namespace} name={name} />;
              return kind === "Cluster" ? <MemberLink name={name} /> : `${kind} ${name}`;
            },
            Reason: ({ reason, count }) => (count > 1 ? `${reason} (${count} times)` : reason),
            Message: ({ message }) => message,
          }}
        />
      )}
    </Loaded>
  );
}
