import type { JSX } from "preact";
import { age, ageOf } from "../../../api/wording.ts";
import type { WarningRow } from "../model.ts";
import { counted } from "./format.ts";
import { MemberLink, PodLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Awaited, Listed, Loaded, ReadyBadge, Table, Time, useNow, useReading } from "./parts.tsx";
import { QueuesThatWait } from "./queues.tsx";
import { TURNS } from "./rates.ts";
import { linkTo } from "./route.ts";
import { byReason, ofShown, type ReasonGroup, troubled, waitingCopies } from "./summary.ts";
import { podWorkloads, wholeLink } from "./workload-rows.ts";

const WARNINGS_EVERY_MS = 30_000;
const MOST_ROWS = 12;
const PODS_AWAITED = "the pods are still being read…";

/** The first view: what is wrong, what waits and why, what moves, and how fast. */
export function Overview(): JSX.Element {
  const { members, hidden, pods, whole, isComplete } = useLive();
  const now = useNow();
  if (members === undefined && !hidden.members) return <Awaited what="the overview" />;
  const isReading = !isComplete && pods.size === 0;
  const all = [...pods.values()];
  const running = all.filter(({ state }) => state === "running").length;
  const waiting = byReason(all, ["waiting"], members);
  const failing = byReason(all, ["failed"], members);
  const copies = waitingCopies(whole.rows);
  return (
    <>
      <header class="view-head">
        <h1>Overview</h1>
        <p>
          {members !== undefined && `${counted(members.length, "member")}, `}
          {isReading ? PODS_AWAITED : `${counted(all.length, "pod")}, ${running.toLocaleString()} running`}
        </p>
      </header>
      <section>
        <h2>Members with trouble</h2>
        <Members />
      </section>
      <section>
        <h2>What waits, and why</h2>
        {waiting.length + copies.length === 0 && <p class="muted">{isReading ? PODS_AWAITED : "Nothing waits."}</p>}
        <Groups of={waiting} state="waiting" now={now} />
        {copies.length > 0 && (
          <Table
            columns={["Object", "Member", "Why"]}
            rows={copies.slice(0, MOST_ROWS).map(({ object, member, why }) => ({
              key: `${object.uid} ${member}`,
              cells: [
                <a href={wholeLink(object)} key="object">
                  {object.kind}/{object.name}
                </a>,
                <MemberLink name={member} key="member" />,
                why,
              ],
            }))}
          />
        )}
      </section>
      <QueuesThatWait />
      <section>
        <h2>What fails</h2>
        {failing.length === 0 && <p class="muted">{isReading ? PODS_AWAITED : "Nothing fails."}</p>}
        <Groups of={failing} state="failed" now={now} />
      </section>
      <section>
        <h2>What moves</h2>
        <Moving />
        <Pace now={now} />
      </section>
      <section>
        <h2>Recent warnings</h2>
        <Warnings />
      </section>
    </>
  );
}

function Members(): JSX.Element {
  const { members = [], hidden } = useLive();
  const now = useNow();
  if (hidden.members) return <p class="muted">You may not see the members.</p>;
  const bad = troubled(members);
  if (members.length === 0) return <p class="muted">No member has joined yet.</p>;
  if (bad.length === 0) return <p class="muted">None: {counted(members.length, "member")} ready.</p>;
  return (
    <>
      <Table
        columns={["Member", "State", "Since", "Why"]}
        rows={bad.slice(0, MOST_ROWS).map(({ name, ready, isCordoned, since, reason }) => ({
          key: name,
          cells: [
            <MemberLink name={name} key="member" />,
            <ReadyBadge ready={ready} isCordoned={isCordoned} key="state" />,
            ready === "True" ? "–" : (ageOf(since, now) ?? "–"),
            reason ?? "",
          ],
        }))}
      />
      {bad.length > MOST_ROWS && (
        <p>
          <a href={linkTo(["members"], { sort: "State" })}>All {counted(bad.length, "member")} with trouble</a>
        </p>
      )}
    </>
  );
}

function Groups({ of, state, now }: { of: readonly ReasonGroup[]; state: string; now: number }): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <>
      <Table
        columns={["Pods", "Oldest", "Such as", "Why"]}
        rows={of.slice(0, MOST_ROWS).map(({ why, pods, since }) => ({
          key: why,
          cells: [
            pods.length.toLocaleString(),
            ageOf(since, now) ?? "–",
            <PodLink namespace={pods[0]?.namespace ?? ""} name={pods[0]?.name ?? ""} key="pod" />,
            <span title={pods[0]?.why} key="why">
              {why}
            </span>,
          ],
        }))}
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
  const count = (state: string): number => all.filter((row) => row.state === state).length;
  const leaving = podWorkloads(all.filter(({ state }) => state === "ending"));
  const copies = whole.rows.flatMap(({ members }) => members.filter(({ tone }) => tone === "ending")).length;
  return (
    <p>
      <a href={linkTo(["pods"], { state: "starting" })}>{counted(count("starting"), "pod")} starting</a>,{" "}
      <a href={linkTo(["pods"], { state: "ending" })}>{counted(count("ending"), "pod")} ending</a>
      {copies > 0 && `, ${counted(copies, "copy", "copies")} leaving a member`}
      {leaving.length > 0 && (
        <>
          {" of "}
          <Listed
            items={leaving.slice(0, MOST_ROWS).map(({ key, link, kind, name }) => [
              key,
              <a key={key} href={link}>
                {kind}/{name}
              </a>,
            ])}
          />
        </>
      )}
      .
    </p>
  );
}

// Nothing is told by the first moments.
const FIRST_COUNTS_MS = 5_000;

/** What became of pods since the page was opened, at most in the last five minutes. */
function Pace({ now }: { now: number }): JSX.Element {
  const { ms, of } = useLive().rates.counts(now);
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
  const reading = useReading<readonly WarningRow[]>("/api/warnings", undefined, WARNINGS_EVERY_MS);
  return (
    <Loaded reading={reading} what="the warnings">
      {(all) => {
        const shown = ofShown(all, pods.values(), whole.rows);
        if (shown.length === 0) return <p class="muted">None of what is shown here.</p>;
        return (
          <Table
            columns={["Time", "Object", "Reason", "Message"]}
            rows={shown.slice(0, MOST_ROWS).map(({ at, kind, namespace, name, reason, message, count }) => ({
              key: `${at} ${kind} ${namespace} ${name} ${reason} ${message}`,
              cells: [
                <Time at={at} key="time" />,
                kind === "Pod" ? (
                  <PodLink namespace={namespace} name={name} key="object" />
                ) : kind === "Cluster" ? (
                  <MemberLink name={name} key="object" />
                ) : (
                  `${kind} ${name}`
                ),
                count > 1 ? `${reason} (${count} times)` : reason,
                message,
              ],
            }))}
          />
        );
      }}
    </Loaded>
  );
}
