import type { JSX } from "preact";
import { type MemberReason, reasonLine } from "../../explain/reasons.ts";
import { MemberLink } from "./links.tsx";
import { Table } from "./parts.tsx";

/** A reason for each member, as a table. */
export function Reasons({ of }: { of: readonly MemberReason[] }): JSX.Element {
  return (
    <Table
      as="list reasons"
      columns={["Member", "Reason"]}
      rows={of.map((one) => ({
        key: reasonLine(one),
        cells: [<MemberLink key="member" name={one.member} />, one.message],
      }))}
    />
  );
}
