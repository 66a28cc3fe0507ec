import type { JSX } from "preact";
import type { PodRow, WholeRow } from "../model.ts";
import { counted } from "./format.ts";
import { MemberLink, NamespaceLink, NodeLink, PodLink, WorkloadLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Status, Table } from "./parts.tsx";
import { linkTo } from "./route.ts";
import { whyOf } from "./summary.ts";
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
  if (pods.length === 0)
    return <p class="muted">{isComplete ? "No delegated pods." : "The pods are still being read…"}</p>;
  // An empty column is not shown: all pods have in common what the query says.
  const unsaid = (said: string, cell: JSX.Element): JSX.Element | "" => (query[said] === undefined ? cell : "");
  return (
    <>
      <Table
        as="list pods"
        columns={["Pod", "Status", "Namespace", "Workload", "Member", "Node", "Why"]}
        rows={pods.slice(0, MOST_ROWS).map((row) => {
          const why = whyOf(row, members);
          return {
            key: row.uid,
            cells: [
              <PodLink key="pod" {...row} />,
              <Status key="status" row={row} />,
              unsaid("namespace", <NamespaceLink key="namespace" name={row.namespace} />),
              unsaid("workload", <WorkloadLink key="workload" namespace={row.namespace} of={row.workload} />),
              unsaid("member", <MemberLink key="member" name={row.member} />),
              <NodeLink key="node" member={row.member} name={row.node} />,
              why === undefined ? (
                ""
              ) : (
                <span key="why" title={row.why}>
                  {why}
                </span>
              ),
            ],
          };
        })}
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
  if (objects.length === 0) {
    const hidden = notRead.length === 0 ? "" : ` Of some types they cannot be read: ${notRead.join("; ")}`;
    return <p class="muted">No whole objects.{hidden}</p>;
  }
  return (
    <Table
      columns={["Object", "Namespace", "Members"]}
      rows={objects.slice(0, MOST_ROWS).map((object) => ({
        key: object.uid,
        cells: [
          <a href={wholeLink(object)} key="object">
            {object.kind}/{object.name}
          </a>,
          <NamespaceLink key="namespace" name={object.namespace} />,
          object.members.map(({ member, state }) => `${member}: ${state}`).join(", "),
        ],
      }))}
    />
  );
}
