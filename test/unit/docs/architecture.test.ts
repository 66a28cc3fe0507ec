import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..");
const page = readFileSync(join(root, "docs/architecture.md"), "utf8");

/** Returns the names in the first column of the page's table with this header, sorted. */
function namedIn(header: string): string[] {
  const [, body = ""] = page.split(`\n${header}\n`);
  const rows = body.slice(0, body.indexOf("\n\n")).split("\n").slice(1);
  return rows.flatMap((row) => (row.split(" | ")[0] ?? "").match(/(?<=`)\w+(?=`)/g) ?? []).sort();
}

/** Returns the fields of an interface, sorted. */
function fieldsOf(file: string, name: string): string[] {
  const [, body = ""] = readFileSync(join(root, file), "utf8").split(new RegExp(`^export interface ${name}\\b`, "m"));
  return [...body.slice(0, body.indexOf("\n}")).matchAll(/^ {2}readonly (\w+)/gm)]
    .map(([, field = ""]) => field)
    .sort();
}

test("names every field of the delegation controller's memory, and no other", () => {
  const fields = fieldsOf("src/scheduling/memory.ts", "Memory");
  expect(fields.length).toBeGreaterThan(10);
  expect(namedIn("| field | remembers | losing it costs |")).toEqual(fields);
});

test("names every event by which controllers wake each other, and no other", () => {
  const events = [
    ...fieldsOf("src/controllers/events.ts", "ControllerEvents"),
    ...fieldsOf("src/clusters/registry.ts", "RegistryEvents"),
    ...fieldsOf("src/clusters/member-options.ts", "MemberEvents"),
    ...fieldsOf("src/scheduling/events.ts", "SchedulingEvents"),
  ];
  expect(events.length).toBeGreaterThan(20);
  expect(namedIn("| event | from | heard by |")).toEqual(events.sort());
});
