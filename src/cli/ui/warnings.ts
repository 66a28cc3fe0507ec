import { defined } from "../../api/defined.ts";
import type { KubeEvent } from "../../api/kubernetes.ts";
import { listPages } from "../../kube/list.ts";
import { events } from "../../kube/resources.ts";
import { lastTimeOf } from "../explain/events.ts";
import type { WarningRow } from "./model.ts";
import type { Viewer } from "./viewer.ts";

// Enough to choose from: the page shows those of objects that it knows.
const MOST_WARNINGS = 500;

/** Reads the host's latest warnings, newest first. Rejects with KubeError. */
export async function readWarnings({
  host,
  only,
  signal,
}: Pick<Viewer, "host" | "only" | "signal">): Promise<readonly WarningRow[]> {
  const options = { fieldSelector: "type=Warning", dropManagedFields: true, signal, ...defined({ namespace: only }) };
  let newest: WarningRow[] = [];
  for await (const page of listPages(host, events, options)) {
    newest = [...newest, ...page.map(warningRow)].sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, MOST_WARNINGS);
  }
  return newest;
}

function warningRow(event: KubeEvent): WarningRow {
  const { involvedObject = {}, reason = "", message = "", count = 1 } = event;
  const { kind = "", namespace = "", name = "" } = involvedObject;
  return { at: lastTimeOf(event), kind, namespace, name, reason, message, count };
}
