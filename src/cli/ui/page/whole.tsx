import type { JSX } from "preact";
import { ageOf } from "../../../api/wording.ts";
import { doneText, stateOf } from "../../../whole/jobs/state.ts";
import { reasonsOf } from "../../explain/reasons.ts";
import type { WholeJobStatus } from "../../explain/whole-job.ts";
import type { WholeObjectStatus } from "../../explain/whole-object.ts";
import { type ComparedView, TONES } from "../model.ts";
import { objectCommands } from "./commands.ts";
import { Compared } from "./compared.tsx";
import { apiPath } from "./document.ts";
import { Head } from "./head.tsx";
import { MemberLink } from "./links.tsx";
import { Badge, Choice, Loaded, Troubles, useNow, useReading } from "./parts.tsx";
import { changeQuery, type Route } from "./route.ts";
import { Reasons, Table } from "./table.tsx";

/** The view of a whole object: what each member has of it, and the copies beside the object. */
export function WholeObjectPage({ route, names }: { route: Route; names: readonly string[] }): JSX.Element {
  const path = apiPath("objects", ...names);
  return (
    <Loaded isView reading={useReading<WholeObjectStatus>(path)} what="the object">
      {(value) => <WholeObject value={value} path={path} route={route} />}
    </Loaded>
  );
}

function WholeObject({ value, path, route }: { value: WholeObjectStatus; path: string; route: Route }): JSX.Element {
  const now = useNow();
  const { kind, name, namespace, generation, members, conditions, troubles, notPlaced, isDeleting, whole } = value;
  const about = [
    namespace === undefined ? "cluster-scoped" : `namespace ${namespace}`,
    ...(generation === undefined ? [] : [`generation ${generation}`]),
    ...(isDeleting ? ["is being taken back from members"] : whole ? [] : ["stays on the host"]),
  ];
  return (
    <>
      <Head
        title={`${kind}/${name}`}
        about={about.join(", ")}
        name={name}
        commands={objectCommands(route.path[1] ?? kind, namespace, name)}
      />
      {notPlaced !== undefined && <p class="trouble">No member gets it: {notPlaced}</p>}
      <Troubles of={troubles} />
      <Table
        none="No member has it."
        rows={members}
        keyOf={({ cluster }) => cluster}
        columns={{
          Member: ({ cluster }) => <MemberLink name={cluster} />,
          State: ({ state }) => <Badge tone={TONES[state] ?? "running"}>{state}</Badge>,
          Generation: (member) => member.generation ?? "–",
          Health: ({ health = "–" }) => health,
          Since: ({ since }) => ageOf(since, now) ?? "–",
          Why: ({ message = "" }) => message,
        }}
      />
      {conditions.map(({ type, status, message }) => (
        <Condition key={type} what={`${type} is ${status}`} why={message} />
      ))}
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
  const { namespace, name, cluster, shares, active, succeeded, failed, completions, conditions, notPlaced } = job;
  const state = stateOf(conditions, job.started !== undefined);
  const all = [...shares, ...(cluster === undefined ? [] : [{ ...job, cluster, parallelism: undefined, state }])];
  return (
    <>
      <p>
        This Job runs whole in its members, with its pods: {doneText(succeeded, completions)}, {failed} failed, {active}{" "}
        active.
      </p>
      <Table
        none="No member has it."
        rows={all}
        keyOf={(share) => share.cluster}
        columns={{
          Member: (share) => <MemberLink name={share.cluster} />,
          "Completions wanted": (share) => share.completions ?? "–",
          Succeeded: (share) => share.succeeded,
          Failed: (share) => share.failed,
          Active: (share) =>
            share.parallelism === undefined ? share.active : `${share.active} of ${share.parallelism}`,
          Ready: ({ ready }) => ready,
          State: (share) => share.state,
        }}
      />
      <Troubles of={job.troubles} />
      {conditions.map(({ type, since, why }) => (
        <Condition key={type} what={`${type} since ${since}`} why={why} />
      ))}
      {notPlaced !== undefined && (
        <section>
          <h2>Waits for a member</h2>
          <Reasons of={reasonsOf(notPlaced.message)} />
        </section>
      )}
      <MemberCopies
        path={apiPath("objects", "jobs", namespace, name)}
        members={all.map((share) => share.cluster)}
        kind="Job"
        route={route}
      />
    </>
  );
}

/** A condition of the status, which a member reports. */
function Condition({ what, why }: { what: string; why: string }): JSX.Element {
  return <p class="muted">{why === "" ? what : `${what}: ${why}`}</p>;
}

interface CopiesProps {
  /** Path of the object's document. */
  readonly path: string;
  readonly members: readonly string[];
  readonly kind: string;
  readonly route: Route;
}

/** The object of the host beside its copy in a member that the user chooses. */
function MemberCopies({ path, members, kind, route }: CopiesProps): JSX.Element | null {
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
          onChoice={(other) => changeQuery(route, { member: other })}
        />
      </div>
      <CopyIn path={`${path}/in/${encodeURIComponent(member)}`} kind={kind} />
    </section>
  );
}

function CopyIn({ path, kind }: { path: string; kind: string }): JSX.Element {
  return (
    <Loaded reading={useReading<ComparedView>(path)} what="the copy">
      {(value) => <Compared view={value} what={[kind, "copy"]} />}
    </Loaded>
  );
}
