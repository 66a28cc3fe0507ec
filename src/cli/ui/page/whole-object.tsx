import type { JSX } from "preact";
import type { ObjectInMember, WholeObjectStatus } from "../../status/whole-object.ts";
import type { ComparedView, PodRow } from "../model.ts";
import { Compared } from "./compared.tsx";
import { ageOf } from "./format.ts";
import { Badge, Empty, Troubles, useNow, useReading } from "./parts.tsx";
import { changeQuery, type Route } from "./route.ts";

const TONES: Readonly<Record<ObjectInMember["state"], PodRow["state"]>> = {
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
  const now = useNow();
  const path = `/api/objects/${[type, namespace, name].map(encodeURIComponent).join("/")}`;
  const { value, problem } = useReading<WholeObjectStatus>(path, undefined);
  if (value === undefined) {
    return (
      <Empty isView title={problem === undefined ? "Reading the object…" : "This object cannot be shown"}>
        {problem}
      </Empty>
    );
  }
  const { kind, generation, members, conditions, troubles, notPlaced, isDeleting, whole } = value;
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
      </header>
      {notPlaced !== undefined && <p class="trouble">No member gets it: {notPlaced}</p>}
      <Troubles of={troubles} />
      {members.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th>Member</th>
              <th>State</th>
              <th>Generation</th>
              <th>Health</th>
              <th>Since</th>
              <th class="wide">Why</th>
            </tr>
          </thead>
          <tbody>
            {members.map((member) => (
              <tr key={member.cluster}>
                <td>{member.cluster}</td>
                <td>
                  <Badge tone={TONES[member.state]}>{member.state}</Badge>
                </td>
                <td>{member.generation ?? "–"}</td>
                <td>{member.health ?? "–"}</td>
                <td>{ageOf(member.since, now)}</td>
                <td>{member.message ?? ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {conditions.map(({ type: condition, status, message }) => (
        <p class="muted" key={condition}>
          {condition} is {status}
          {message === "" ? "" : `: ${message}`}
        </p>
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

/** The object of the host beside its copy in a member that the user chooses. */
export function MemberCopies({
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
        <select
          aria-label="Member of the copy"
          value={member}
          onChange={({ currentTarget }) => changeQuery(route, { member: currentTarget.value })}
        >
          {members.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </div>
      <CopyIn path={`${path}/in/${encodeURIComponent(member)}`} kind={kind} />
    </section>
  );
}

function CopyIn({ path, kind }: { path: string; kind: string }): JSX.Element | null {
  const { value, problem } = useReading<ComparedView>(path, undefined);
  if (problem !== undefined) return <p class="trouble">{problem}</p>;
  return value === undefined ? null : <Compared view={value} what={[kind, "copy"]} />;
}
