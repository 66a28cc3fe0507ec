import type { JSX } from "preact";
import type { PodRow, WholeRow } from "../model.ts";
import { counted } from "./format.ts";
import { MemberLink, NamespaceLink, NodeLink, PodLink, WorkloadLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Status } from "./parts.tsx";
import { Why } from "./pods.tsx";
import { linkTo } from "./route.ts";
import { whyOf } from "./summary.ts";
import { Table } from "./table.tsx";
import { wholeLink } from "./workload-rows.ts";

const MOST_ROWS = 200;

/** The pods of one place or workload. `query` opens all of them in the view Pods. */
export function PodList({
  pods,
  query,
}: {
  pods: readonly PodRow[];
  query: Readonly<Record<string, string>>;
}): JSX.Element {
  const { members, isComplete } = useLive();
  // An empty column is not shown: all pods have in common what the query says.
  const unsaid = (said: string, cell: JSX.Element): JSX.Element | "" => (query[said] === undefined ? cell : "");
  return (
    <>
      <Table
        as="list pods"
        none={isComplete ? "No delegated pods." : "The pods are still being read…"}
        rows={pods.slice(0, MOST_ROWS)}
        keyOf={({ uid }) => uid}
        columns={{
          Pod: (row) => <PodLink {...row} />,
          Status: (row) => <Status row={row} />,
          Namespace: ({ namespace }) => unsaid("namespace", <NamespaceLink name={namespace} />),
          Workload: ({ namespace, workload }) => {
            return unsaid("workload", <WorkloadLink namespace={namespace} of={workload} />);
          },
          Member: ({ member }) => unsaid("member", <MemberLink name={member} />),
          Node: ({ member, node }) => <NodeLink member={member} name={node} />,
          Why: (row) => (whyOf(row, members) === undefined ? "" : <Why row={row} members={members} />),
        }}
      />
      {pods.length > MOST_ROWS && (
        <p>
          <a href={linkTo(["pods"], query)}>All {counted(pods.length, "pod")}</a>
        </p>
      )}
    </>
  );
}

/** Whole objects, and what each member has of them. */
export function ObjectList({ objects }: { objects: readonly WholeRow[] }): JSX.Element {
  const { notRead } = useLive().whole;
  const hidden = notRead.length === 0 ? "" : ` Of some types they cannot be read: ${notRead.join("; ")}`;
  return (
    <Table
      none={`No whole objects.${hidden}`}
      rows={objects.slice(0, MOST_ROWS)}
      keyOf={({ uid }) => uid}
      columns={{
        Object: (object) => (
          <a href={wholeLink(object)}>
            {object.kind}/{object.name}
          </a>
        ),
        Namespace: ({ namespace }) => <NamespaceLink name={namespace} />,
        Members: ({ members }) => members.map(({ member, state }) => `${member}: ${state}`).join(", "),
      }}
    />
  );
}
