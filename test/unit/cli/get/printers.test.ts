import { expect, test } from "vitest";
import { parse } from "yaml";
import { documentPrinter, type ListPrinter, listPrinter, namePrinter } from "../../../../src/cli/get/printers.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { clusterPage, podPage, printed } from "./pages.ts";

test("prints names that say their cluster and type", () => {
  const text = printed(
    (write) => namePrinter(write),
    (printer) => printer.print(clusterPage("west", ["shop/a"])),
  );
  expect(text).toBe("west pod/a\n");
});

const big = JSON.rawJSON("9007199254740993");

test.each<[string, (write: (text: string | Buffer) => void) => ListPrinter]>([
  ["JSON", (write) => listPrinter(write, "json")],
  ["YAML", (write) => listPrinter(write, "yaml")],
])("prints one %s List of the objects of all clusters, each with its cluster", (_format, make) => {
  const page = podPage(["shop/a"]);
  const object = { apiVersion: "v1", kind: "Pod", ...page.rows[0]?.object, spec: { note: "two\nlines", big } };
  const text = printed(make, (printer) => {
    printer.print(clusterPage("west", [], { page: { ...page, rows: [{ cells: [], object }] } }));
    printer.print(clusterPage("east", ["shop/b"]));
  });
  expect(text).toContain("9007199254740993");
  expect(parse(text, { intAsBigInt: true })).toMatchObject({
    apiVersion: "v1",
    kind: "List",
    items: [
      {
        kind: "Pod",
        metadata: { name: "a", annotations: { "access.legation.dev/cluster": "west" } },
        spec: { note: "two\nlines" },
      },
      { metadata: { name: "b", annotations: { "access.legation.dev/cluster": "east" } } },
    ],
  });
  expect(parse(printed(make, () => undefined))).toEqual({ apiVersion: "v1", kind: "List", items: [] });
});

test.each<["json" | "yaml", string]>([
  ["json", '{"type":"DELETED","object":{"metadata":'],
  ["yaml", "---\ntype: DELETED\nobject:\n  metadata:\n"],
])("prints each change of a watch as a %s document", (format, expected) => {
  const text = printed(
    (write) => documentPrinter(write, { format, events: true }),
    (printer) => printer.print(clusterPage("west", ["shop/a"], { event: "DELETED" })),
  );
  expect(text).toContain(expected);
});
test("prints no characters that control the terminal, whatever a member calls its objects and columns", () => {
  const evil = "a\u001b[2Jb\u009bc";
  const table = podPage([`shop/${evil}`], { columns: [{ name: `Name${evil}`, priority: 0 }] });
  const page = { cluster: "west", resource: pods, page: table };
  const use = (printer: ListPrinter): void => {
    printer.begin?.([page], true);
    printer.print(page);
  };
  expect(printed((write) => namePrinter(write), use)).not.toMatch(/(?!\n)\p{Cc}/u);
});
