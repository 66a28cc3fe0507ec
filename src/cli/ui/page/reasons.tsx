import type { JSX } from "preact";
import { Table } from "./parts.tsx";

/** A message with a reason for each member, as a table. */
export function Reasons({ message }: { message: string }): JSX.Element {
  const rows = message.split("; ").map((part) => {
    const [, member, reason] = /^([a-z0-9][-a-z0-9]*): (.*)$/.exec(part) ?? [];
    return { member: member ?? "", reason: reason ?? part };
  });
  return (
    <Table
      as="list reasons"
      columns={["Member", "Reason"]}
      rows={rows.map(({ member, reason }) => ({ key: member + reason, cells: [member, reason] }))}
    />
  );
}
