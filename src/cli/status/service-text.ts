import type { ServiceInCluster, ServiceStatus } from "../explain/service.ts";
import { troubleText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { wholeObjectText } from "./whole-text.ts";

export function serviceText(status: ServiceStatus, now: number, terminal: Terminal): string {
  const { namespace, name, type, ports, relay, clusters, whole, troubles, hidden } = status;
  const ready = sum(clusters, "ready");
  const all = ready + sum(clusters, "notReady");
  return [
    `Service ${namespace}/${name}: ${[type, ...ports, ...(relay === undefined ? [] : [`relayed to ${relay}`])].join(", ")}; ${ready} of ${all} endpoints ready`,
    table(["FROM", "NETWORK", "READY", "NOT READY", "REACHES", "NOT REACHED"], clusters.map(row), terminal.width, [
      "NOT READY",
      "NETWORK",
      "READY",
    ]),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    ...hiddenText(hidden, terminal),
    ...(whole === undefined ? [] : ["", wholeObjectText(whole, now, terminal)]),
  ].join("\n");
}

function sum(clusters: readonly ServiceInCluster[], of: "ready" | "notReady"): number {
  return clusters.reduce((total, one) => total + one[of], 0);
}

function row(one: ServiceInCluster): string[] {
  const { cluster, network = "-", ready, notReady, reaches, unreached } = one;
  const named = (other: string | undefined): string => (other === cluster ? "its own" : nameOf(other));
  const reasons = Map.groupBy(unreached, ({ why }) => why);
  const words = [...reasons].map(([why, those]) => `${those.map((other) => named(other.cluster)).join(", ")}: ${why}`);
  return [
    nameOf(cluster),
    network,
    String(ready),
    String(notReady),
    reaches.map(named).join(", ") || "-",
    words.join("; "),
  ];
}

function nameOf(cluster: string | undefined): string {
  return cluster ?? "this cluster";
}
