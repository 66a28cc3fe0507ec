import type { ClusterPage, ListPrinter } from "../../../../src/cli/get/printers.ts";
import { pods } from "../../../../src/kube/resources.ts";
import type { TablePage } from "../../../../src/kube/tables.ts";

/** A page of pods, each written `namespace/name`, `namespace/name/version` or `namespace/name/version/uid`. */
export function podPage(names: readonly string[], more: Partial<TablePage> = {}): TablePage {
  return {
    columns: [
      { name: "Name", priority: 0 },
      { name: "Status", priority: 0 },
      { name: "Node", priority: 1 },
    ],
    rows: names.map((each) => {
      const [namespace = "", name = "", version = "1", uid = `${namespace}-${name}`] = each.split("/");
      const metadata = { namespace, name, uid, resourceVersion: version };
      return { cells: [name, "Running", "node-1"], object: { metadata } };
    }),
    resourceVersion: "10",
    ...more,
  };
}

/** The page of one cluster. */
export function clusterPage(cluster: string, names: readonly string[], more: Partial<ClusterPage> = {}): ClusterPage {
  return { cluster, resource: pods, page: podPage(names), ...more };
}

/** Returns what a printer writes. */
export function printed(
  make: (write: (text: string | Buffer) => void) => ListPrinter,
  use: (printer: ListPrinter) => void,
): string {
  let text = "";
  const printer = make((more) => {
    text += String(more);
  });
  use(printer);
  printer.end?.();
  return text;
}
