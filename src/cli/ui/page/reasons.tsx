import type { JSX } from "preact";
import { type MemberReason, reasonLine } from "../../explain/reasons.ts";
import { Table } from "./parts.tsx";

/** A reason for each member, as a table. */
export function Reasons({ of }: { of: readonly MemberReason[] }): JSX.Element {
  return (
    <Table
      as="list reasons"
      columns={["Member", "Reason"]}
      rows={of.map((one) => ({ key: reasonLine(one), cells: [one.member ?? "", one.message] }))}
    />
  );
}
