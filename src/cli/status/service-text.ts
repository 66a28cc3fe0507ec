import type { ServiceStatus } from "../explain/service.ts";
import { clusterText, reachesText, serviceSummary, unreachedText } from "../explain/service-words.ts";
import { troubleText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { type Columns, tableOf } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { wholeObjectText } from "./whole-text.ts";

export function serviceText(status: ServiceStatus, now: number, terminal: Terminal): string {
  const { namespace, name, clusters, whole, troubles, hidden } = status;
  const columns: Columns<(typeof clusters)[number]> = {
    FROM: ({ cluster }) => clusterText(cluster),
    NETWORK: ({ network }) => network ?? "-",
    READY: ({ ready }) => String(ready),
    "NOT READY": ({ notReady }) => String(notReady),
    REACHES: (one) => reachesText(one) || "-",
    "NOT REACHED": unreachedText,
  };
  return [
    `Service ${namespace}/${name}: ${serviceSummary(status)}`,
    ...tableOf(clusters, columns, terminal.width, ["NOT READY", "NETWORK", "READY"]),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    ...hiddenText(hidden, terminal),
    ...(whole === undefined ? [] : ["", wholeObjectText(whole, now, terminal)]),
  ].join("\n");
}
