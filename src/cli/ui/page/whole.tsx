import type { JSX } from "preact";
import { ageOf } from "../../../api/wording.ts";
import { doneText, stateOf } from "../../../whole/jobs/state.ts";
import { reasonsOf } from "../../explain/reasons.ts";
import type { WholeJobStatus } from "../../explain/whole-job.ts";
import type { WholeObjectStatus } from "../../explain/whole-object.ts";
import type { ComparedView, PodRow } from "../model.ts";
import { objectCommands } from "./commands.ts";
import { Compared } from "./compared.tsx";
import { CopyButtons } from "./copy.tsx";
import { MemberLink } from "./links.tsx";
import { Badge, Choice, Loaded, Table, Troubles, useNow, useReading } from "./parts.tsx";
import { Reasons } from "./reasons.tsx";
import { changeQuery, type Route } from "./route.ts";

const TONES: Readonly<Record<string, PodRow["state"]>> = {
  InStep: "running",
  Waiting: "waiting",
  Contested: "failed",
  Refused: "failed",
  Leaving: "ending",
  NotReachable: "failed",
  Excluded: "succeeded",
};

/** The view of a whole object: what each member has of it, and the copies beside the object. */
export function WholeObjectPage({
  route,
  type,
  namespace,
  name,
}: {
  route: Route;
  type: string;
  namespace: string;
  name: string;
}): JSX.Element {
  const path = `/api/objects/${[type, namespace, name].map(encodeURIComponent).join("/")}`;
  return (
    <Loaded isView reading={useReading<WholeObjectStatus>(path, undefined)} what="the object">
      {(value) => <WholeObject value={value} path={path} route={route} />}
    </Loaded>
  );
}

function WholeObject({ value, path, route }: { value: WholeObjectStatus; path: string; route: Route }): JSX.Element {
  const now = useNow();
  const { kind, name, generation, members, conditions, troubles, notPlaced, isDeleting, whole } = value;
  return (
    <>
      <header class="view-head">
        <h1>
          {kind}/{name}
        </h1>
        <p>
          {value.namespace === undefined ? "cluster-scoped" : `namespace ${value.namespace}`}
          {generation !== undefined && `, generation ${generation}`}
          {isDeleting ? ", is being taken back from members" : !whole && ", stays on the host"}
        </p>
        <CopyButtons name={name} commands={objectCommands(route.path[1] ?? kind, value.namespace, name)} />
      </header>
      {notPlaced !== undefined && <p class="trouble">No member gets it: {notPlaced}</p>}
      <Troubles of={troubles} />
      <Table
        columns={["Member", "State", "Generation", "Health", "Since", "Why"]}
        none="No member has it."
        rows={members.map((member) => ({
          key: member.cluster,
          cells: [
            <MemberLink name={member.cluster} key="member" />,
            <Badge tone={TONES[member.state] ?? "running"} key="state">
              {member.state}
            </Badge>,
            member.generation ?? "–",
            member.health ?? "–",
            ageOf(member.since, now) ?? "–",
            member.message ?? "",
          ],
        }))}
      />
      <Conditions
        of={conditions.map(({ type: condition, status, message }) => {
          return { type: condition, what: `${condition} is ${status}`, why: message };
        })}
      />
      <MemberCopies
        path={path}
        members={members.filter(({ state }) => state !== "Excluded").map(({ cluster }) => cluster)}
        kind={kind}
        route={route}
      />
    </>
  );
}

/** The view of a Job that runs whole: the shares of its members, and the copies beside the Job. */
export function WholeJob({ job, route }: { job: WholeJobStatus; route: Route }): JSX.Element {
  const { namespace, name, cluster, shares, active, ready, succeeded, failed, completions, conditions, notPlaced } =
    job;
  const state = stateOf(conditions, job.started !== undefined);
  const whole =
    cluster === undefined
      ? []
      : [{ cluster, completions, parallelism: undefined, active, ready, succeeded, failed, state }];
  const all = shares.length > 0 ? shares : whole;
  return (
    <>
      <p>
        This Job runs whole in its members, with its pods: {doneText(succeeded, completions)}, {failed} failed, {active}{" "}
        active.
      </p>
      <Table
        columns={["Member", "Completions wanted", "Succeeded", "Failed", "Active", "Ready", "State"]}
        none="No member has it."
        rows={all.map((share) => ({
          key: share.cluster,
          cells: [
            <MemberLink name={share.cluster} key="member" />,
            share.completions ?? "–",
            share.succeeded,
            share.failed,
            share.parallelism === undefined ? share.active : `${share.active} of ${share.parallelism}`,
            share.ready,
            share.state,
          ],
        }))}
      />
      <Troubles of={job.troubles} />
      <Conditions of={conditions.map(({ type, since, why }) => ({ type, what: `${type} since ${since}`, why }))} />
      {notPlaced !== undefined && (
        <section>
          <h2>Waits for a member</h2>
          <Reasons of={reasonsOf(notPlaced.message)} />
        </section>
      )}
      <MemberCopies
        path={`/api/objects/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`}
        members={all.map((share) => share.cluster)}
        kind="Job"
        route={route}
      />
    </>
  );
}

/** Conditions of the status, which members report. */
function Conditions({
  of,
}: {
  of: readonly { readonly type: string; readonly what: string; readonly why: string }[];
}): JSX.Element {
  return (
    <>
      {of.map(({ type, what, why }) => (
        <p class="muted" key={type}>
          {why === "" ? what : `${what}: ${why}`}
        </p>
      ))}
    </>
  );
}

/** The object of the host beside its copy in a member that the user chooses. */
function MemberCopies({
  path,
  members,
  kind,
  route,
}: {
  path: string;
  members: readonly string[];
  kind: string;
  route: Route;
}): JSX.Element | null {
  const chosen = route.query.get("member");
  const member = members.find((each) => each === chosen) ?? members[0];
  if (member === undefined) return null;
  return (
    <section>
      <div class="compare-title">
        <h2>Copies</h2>
        <Choice
          label="Member of the copy"
          value={member}
          of={members}
          onChoice={(chosen) => changeQuery(route, { member: chosen })}
        />
      </div>
      <CopyIn path={`${path}/in/${encodeURIComponent(member)}`} kind={kind} />
    </section>
  );
}

function CopyIn({ path, kind }: { path: string; kind: string }): JSX.Element {
  return (
    <Loaded reading={useReading<ComparedView>(path, undefined)} what="the copy">
      {(value) => <Compared view={value} what={[kind, "copy"]} />}
    </Loaded>
  );
}
