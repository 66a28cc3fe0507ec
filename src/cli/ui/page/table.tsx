import type { ComponentChildren, JSX } from "preact";
import type { ToldEvent } from "../../explain/events.ts";
import type { PendingPods } from "../../explain/pending.ts";
import { type MemberReason, reasonLine, reasonsOf } from "../../explain/reasons.ts";
import { type Columns, filledColumns } from "./filled-columns.ts";
import { counted } from "./format.ts";
import { MemberLink } from "./links.tsx";
import { Time } from "./parts.tsx";

/**
 * A table without the columns of which all cells are empty. Its last column takes the room that is left. `isMuted`: the cells of that
 * column are asides. `none`: words for no rows.
 */
export function Table<Row>({
  rows,
  keyOf,
  columns,
  caption,
  isMuted = false,
  as = "list",
  none = "None.",
}: {
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  columns: Columns<Row>;
  caption?: ComponentChildren;
  isMuted?: boolean;
  as?: string;
  none?: string;
}): JSX.Element {
  if (rows.length === 0) {
    return (
      <>
        {caption !== undefined && <p class="muted">{caption}</p>}
        <p class="muted">{none}</p>
      </>
    );
  }
  const last = Object.keys(columns).at(-1);
  const filled = filledColumns(columns, rows);
  return (
    <table class={as}>
      {caption !== undefined && <caption>{caption}</caption>}
      <thead>
        <tr>
          {filled.map(({ name }) => (
            <th key={name} class={name === last ? "wide" : undefined}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={keyOf(row)}>
            {filled.map(({ name, cells }) => (
              <td key={name} data-label={name} class={isMuted && name === last ? "muted" : undefined}>
                {cells[index]}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Events, each with where it was told if some have that. */
export function Events({
  of,
  none,
}: {
  of: readonly (ToldEvent & { readonly where?: string })[];
  none: string;
}): JSX.Element {
  return (
    <Table
      none={none}
      rows={of}
      keyOf={({ at, where, reason, message }) => `${at}${where}${reason}${message}`}
      columns={{
        Time: ({ at }) => <Time at={at} />,
        Where: ({ where }) => where ?? "",
        Type: ({ type }) => type,
        Reason: ({ reason }) => reason,
        Message: ({ message }) => message,
      }}
    />
  );
}

/** A reason for each member. */
export function Reasons({ of }: { of: readonly MemberReason[] }): JSX.Element {
  return (
    <Table
      as="list reasons"
      rows={of}
      keyOf={reasonLine}
      columns={{ Member: ({ member }) => <MemberLink name={member} />, Reason: ({ message }) => message }}
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
