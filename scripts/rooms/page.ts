import { table } from "../reference/markdown.ts";
import { FOUNDATIONS, type Room } from "./room.ts";

const BEGIN = "<!-- Generated from scripts/rooms by `npm run generate`: change the rows there. -->\n";
const END = "<!-- End of the generated table. -->\n";

/** Returns the page with its table of rooms made anew. */
export function withRooms(page: string, rooms: readonly Room[]): string {
  const [before = "", rest = ""] = page.split(BEGIN);
  const after = rest.split(END)[1];
  if (after === undefined) throw new Error(`docs/architecture.md lacks the lines ${BEGIN}and ${END}`);
  const names = (list: readonly string[]): string => list.map((name) => `\`${name}\``).join(", ");
  const foundations = Object.entries(FOUNDATIONS).map(([name, list]) => [`any ${name}`, names(list)]);
  const rows = rooms.map(({ room, purpose, foundation, imports, exceptions = [] }) => {
    const further = names(imports);
    const all = foundation === undefined ? further || "nothing" : `any ${foundation}'s${further && `; ${further}`}`;
    return [`\`${room}\``, purpose, all, names(exceptions)];
  });
  const tables = [
    table(["foundation", "rooms"], foundations),
    table(["room", "what", "may import", "still imports"], rows),
  ];
  return `${before}${BEGIN}\n${tables.join("\n")}\n${END}${after}`;
}
