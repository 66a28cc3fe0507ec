import type { JSX } from "preact";

/** A message with a reason for each member, as a table. */
export function Reasons({ message }: { message: string }): JSX.Element {
  const rows = message.split("; ").map((part) => {
    const [, member, reason] = /^([a-z0-9][-a-z0-9]*): (.*)$/.exec(part) ?? [];
    return { member: member ?? "", reason: reason ?? part };
  });
  return (
    <table class="list reasons">
      <thead>
        <tr>
          <th>Member</th>
          <th class="wide">Reason</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ member, reason }) => (
          <tr key={member + reason}>
            <td>{member}</td>
            <td>{reason}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
