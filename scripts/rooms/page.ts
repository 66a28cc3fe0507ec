import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { table } from "../reference/markdown.ts";
import { FOUNDATIONS, type Room } from "./room.ts";

const END = "<!-- End of the generated table. -->\n";

const policySchema = z.object({
  kind: z.literal("ValidatingAdmissionPolicy"),
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    matchConstraints: z.object({
      resourceRules: z.array(z.object({ resources: z.array(z.string()), operations: z.array(z.string()) })),
    }),
    validations: z.array(z.object({})),
  }),
});

/** Returns the page of the architecture with its tables of rooms and of admission policies made anew. */
export function withTables(page: string, rooms: readonly Room[], policies: string): string {
  return replaced(replaced(page, "scripts/rooms", roomTables(rooms)), "manifests/policies.yaml", policyTable(policies));
}

/** Returns the page with the part that is generated from this source made anew. */
function replaced(page: string, source: string, text: string): string {
  const begin = `<!-- Generated from ${source} by \`npm run generate\`: change that, not this table. -->\n`;
  const [before = "", rest = ""] = page.split(begin);
  const [, ...after] = rest.split(END);
  if (after.length === 0) throw new Error(`docs/architecture.md lacks the lines ${begin}and ${END}`);
  return `${before}${begin}\n${text}\n${END}${after.join(END)}`;
}

function roomTables(rooms: readonly Room[]): string {
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
  return tables.join("\n");
}

function policyTable(manifests: string): string {
  const rows = parseAllDocuments(manifests).flatMap((document) => {
    const { data: policy } = policySchema.safeParse(document.toJS());
    if (policy === undefined) return [];
    const { matchConstraints, validations } = policy.spec;
    const asked = matchConstraints.resourceRules.map(
      ({ resources, operations }) => `${operations.join(", ")} of ${resources.map((name) => `\`${name}\``).join(", ")}`,
    );
    return [[`\`${policy.metadata.name}\``, asked.join("; "), String(validations.length)]];
  });
  return table(["policy", "is asked for", "rules"], rows);
}
