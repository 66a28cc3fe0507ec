import type { JSX } from "preact";
import { ageOf } from "../../../api/wording.ts";
import { TONES } from "../../../whole/member-part.ts";
import { reasonsOf } from "../../explain/reasons.ts";
import type { WholeObjectStatus } from "../../explain/whole-object.ts";
import { conditionText, countColumns } from "../../explain/whole-words.ts";
import type { ComparedView } from "../model.ts";
import { objectCommands } from "./commands.ts";
import { Compared } from "./compared.tsx";
import { apiPath } from "./document.ts";
import { capital } from "./format.ts";
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

interface ViewProps {
  readonly value: WholeObjectStatus;
  /** Path of the object's document. */
  readonly path: string;
  readonly route: Route;
}

function WholeObject({ value, path, route }: ViewProps): JSX.Element {
  const { kind, name, namespace, generation, isDeleting, whole } = value;
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
      <WholeMembers value={value} path={path} route={route} />
    </>
  );
}

/** What each member has of a whole object, what is wrong, and the copies beside the object. */
export function WholeMembers({ value, path, route }: ViewProps): JSX.Element {
  const now = useNow();
  const { kind, progress, members, conditions, troubles, notPlaced } = value;
  const counts = countColumns(members).map(([count, cell]) => [capital(count), cell] as const);
  return (
    <>
      {notPlaced !== undefined && (
        <section>
          <h2>Not placed</h2>
          <Reasons of={reasonsOf(notPlaced)} />
        </section>
      )}
      <Troubles of={troubles} />
      <Table
        none="No member has it."
        caption={progress}
        rows={members}
        keyOf={({ cluster }) => cluster}
        columns={{
          Member: ({ cluster }) => <MemberLink name={cluster} />,
          State: ({ state }) => <Badge tone={TONES[state] ?? "running"}>{state}</Badge>,
          ...Object.fromEntries(counts),
          Generation: (member) => member.generation ?? "",
          Health: ({ health = "" }) => health,
          Since: ({ since }) => ageOf(since, now) ?? "",
          Why: ({ message = "" }) => message,
        }}
      />
      {conditions.map((condition) => (
        <p class="muted" key={condition.type}>
          {conditionText(condition)}
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
