import type { MemberRow } from "../../../../../src/cli/ui/model.ts";
import { memberRows } from "../../../../../src/cli/ui/rows.ts";
import { host } from "../../simulation/host.ts";

/** Returns the row of a ready member without room. */
export function memberRow(name: string, fields: Partial<MemberRow> = {}): MemberRow {
  const { clusters, nodes } = host({ [name]: {} });
  const [row] = memberRows(clusters, nodes, []);
  if (row === undefined) throw new Error("the host has one member");
  return { ...row, use: [], ...fields };
}
