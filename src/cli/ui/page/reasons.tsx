import type { JSX } from "preact";
import type { PendingPods } from "../../explain/pending.ts";
import { type MemberReason, reasonLine, reasonsOf } from "../../explain/reasons.ts";
import { counted } from "./format.ts";
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

/** Pods without a member, those of one reason together. `fate` follows their number in the heading. */
export function Pending({
  of,
  fate,
  heading: Heading,
}: {
  of: readonly PendingPods[];
  fate: string;
  heading: "h2" | "h3";
}): JSX.Element {
  return (
    <>
      {of.map(({ reason, message, pods }) => (
        <section key={reason + message}>
          <Heading>
            {counted(pods.length, "pod")} {fate}: {reason}
          </Heading>
          <Reasons of={reasonsOf(message)} />
        </section>
      ))}
    </>
  );
}
