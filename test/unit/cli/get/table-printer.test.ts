import { expect, test } from "vitest";
import type { ListPrinter } from "../../../../src/cli/get/printers.ts";
import { TablePrinter } from "../../../../src/cli/get/table-printer.ts";
import { deployments, pods } from "../../../../src/kube/resources.ts";
import { clusterPage, podPage, printed } from "./pages.ts";

const FORMAT = { wide: false, showLabels: false, events: false, allNamespaces: true };

function printedTable(
  use: (printer: ListPrinter) => void,
  format: Partial<typeof FORMAT> = {},
  width = Number.POSITIVE_INFINITY,
): string {
  return printed(
    (write) => new TablePrinter({ write, width, paint: (_style, text) => text }, { ...FORMAT, ...format }),
    use,
  );
}

test("aligns the rows of all clusters by their first pages", () => {
  const west = clusterPage("west", ["shop/web"]);
  const east = clusterPage("east-2", ["accounting/database-0"]);
  const text = printedTable((printer) => {
    printer.begin?.([west, east], false);
    printer.print(west);
    printer.print(east);
  });
  expect(text).toBe(
    [
      "CLUSTER   NAMESPACE    NAME         STATUS",
      "west      shop         web          Running",
      "east-2    accounting   database-0   Running",
      "",
    ].join("\n"),
  );
});

test("widens a column for a later row, and repeats no header", () => {
  const text = printedTable(
    (printer) => {
      printer.begin?.([clusterPage("west", ["shop/a"])], false);
      printer.print(clusterPage("west", ["shop/a"]));
      printer.print(clusterPage("west", ["shop/abcdefgh", "shop/b"]));
    },
    { allNamespaces: false, wide: true },
  );
  expect(text).toBe(
    [
      "CLUSTER   NAME   STATUS    NODE",
      "west      a      Running   node-1",
      "west      abcdefgh   Running   node-1",
      "west      b          Running   node-1",
      "",
    ].join("\n"),
  );
});

test("prints a table for each of several types, with the type before each name", () => {
  const text = printedTable((printer) => {
    for (const resource of [pods, deployments]) {
      const page = clusterPage("west", ["shop/web"], { resource });
      printer.begin?.([page], true);
      printer.print(page);
    }
  });
  expect(text.split("\n")).toEqual([
    expect.stringMatching(/^CLUSTER +NAMESPACE +NAME +STATUS$/),
    expect.stringMatching(/^west +shop +pod\/web +Running$/),
    "",
    expect.stringMatching(/^CLUSTER /),
    expect.stringMatching(/^west +shop +deployment\.apps\/web +Running$/),
    "",
  ]);
});

test("prints a header again for a cluster that answers later and has further columns", () => {
  const columns = [...podPage([]).columns, { name: "Zone", priority: 0 }];
  const later = clusterPage("east", ["shop/b"], { page: { ...podPage(["shop/b"]), columns } });
  const text = printedTable((printer) => {
    const first = clusterPage("west", ["shop/a"]);
    printer.begin?.([first], false);
    printer.print(first);
    printer.begin?.([later], false);
    printer.print(later);
  });
  expect(text.match(/^CLUSTER.*$/gm)).toEqual([expect.not.stringContaining("ZONE"), expect.stringContaining("ZONE")]);
});

const TITLES = ["Name", "Ready", "Status", "Restarts", "Age"];

function narrowTable(width: number, columns: readonly string[], cells: readonly string[], twice = false): string[] {
  const page = clusterPage("west", [], {
    page: {
      ...podPage([]),
      columns: columns.map((name) => ({ name, priority: 0 })),
      rows: [{ cells, object: { metadata: { namespace: "shop", name: "web" } } }],
    },
  });
  const use = (printer: ListPrinter): void => {
    for (const resource of twice ? [pods, deployments] : [pods]) {
      printer.begin?.([{ ...page, resource }], twice);
      printer.print({ ...page, resource });
    }
  };
  return printedTable(use, { allNamespaces: false }, width).trimEnd().split("\n");
}

const CELLS = ["web-6d4cf56db6-東京", "1/1", "Running", "0", "5m"];

test.each<[number, string[]]>([
  [
    40,
    [
      "CLUSTER   NAME                  STATUS",
      "west      web-6d4cf56db6-東京   Running",
      "(-o wide shows READY, RESTARTS, AGE)",
    ],
  ],
  [
    60,
    [
      "CLUSTER   NAME                  READY   STATUS    RESTARTS",
      "west      web-6d4cf56db6-東京   1/1     Running   0",
      "(-o wide shows AGE)",
    ],
  ],
  ...[80, 200, Number.POSITIVE_INFINITY].map((width): [number, string[]] => [
    width,
    [
      "CLUSTER   NAME                  READY   STATUS    RESTARTS   AGE",
      "west      web-6d4cf56db6-東京   1/1     Running   0          5m",
    ],
  ]),
])("leaves out the last columns that do not fit into %d, and shortens no cell", (width, lines) => {
  expect(narrowTable(width, TITLES, CELLS)).toEqual(lines);
});

test("keeps the message of events, which may be longer than a line", () => {
  const columns = ["Last Seen", "Type", "Reason", "Object", "Message"];
  const message = "Back-off restarting failed container";
  expect(narrowTable(30, columns, ["5s", "Warning", "BackOff", "pod/web", message])).toEqual([
    "CLUSTER   REASON    OBJECT    MESSAGE",
    `west      BackOff   pod/web   ${message}`,
    "(-o wide shows 2 more columns)",
  ]);
});

test("says below each of several tables what it leaves out", () => {
  const lines = narrowTable(60, TITLES, CELLS, true);
  expect(lines.map((line) => line.split(" ")[0])).toEqual(["CLUSTER", "west", "(-o", "", "CLUSTER", "west", "(-o"]);
});

test("prints no header without rows", () => {
  expect(printedTable((printer) => printer.begin?.([clusterPage("west", [])], false))).toBe("");
});
test("prints no characters that control the terminal, whatever a member calls its objects and columns", () => {
  const evil = "a\u001b[2Jb\u009bc";
  const table = podPage([`shop/${evil}`], { columns: [{ name: `Name${evil}`, priority: 0 }] });
  const page = { cluster: "west", resource: pods, page: table };
  const use = (printer: ListPrinter): void => {
    printer.begin?.([page], true);
    printer.print(page);
  };
  expect(printedTable(use)).not.toMatch(/(?!\n)\p{Cc}/u);
});
