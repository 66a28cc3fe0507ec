import type { ServiceStatus } from "../explain/service.ts";
import { clusterText, reachesText, serviceSummary, unreachedText } from "../explain/service-words.ts";
import { troubleText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { wholeObjectText } from "./whole-text.ts";

export function serviceText(status: ServiceStatus, now: number, terminal: Terminal): string {
  const { namespace, name, clusters, whole, troubles, hidden } = status;
  const rows = clusters.map((one) => [
    clusterText(one.cluster),
    one.network ?? "-",
    String(one.ready),
    String(one.notReady),
    reachesText(one) || "-",
    unreachedText(one),
  ]);
  return [
    `Service ${namespace}/${name}: ${serviceSummary(status)}`,
    table(["FROM", "NETWORK", "READY", "NOT READY", "REACHES", "NOT REACHED"], rows, terminal.width, [
      "NOT READY",
      "NETWORK",
      "READY",
    ]),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    ...hiddenText(hidden, terminal),
    ...(whole === undefined ? [] : ["", wholeObjectText(whole, now, terminal)]),
  ].join("\n");
}
