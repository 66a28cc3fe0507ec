import { counted } from "../../api/wording.ts";
import type { ServiceInCluster, ServiceStatus, ServiceWay } from "./service.ts";

const HOW: Readonly<Record<ServiceWay, string>> = { local: "", joined: " (joined)", relay: " (relay)", address: "" };

/** Returns a Service's type, ports, relay and endpoints in one line. */
export function serviceSummary({ type, ports, relay, clusters }: ServiceStatus): string {
  const [ready, notReady] = [sum(clusters, "ready"), sum(clusters, "notReady")];
  const relayed =
    relay === undefined ? [] : [`relayed to ${relay.to} by ${counted(relay.replicas, "replica")} of legation relay`];
  return `${[type, ...ports, ...relayed].join(", ")}; ${ready} of ${ready + notReady} endpoints ready`;
}

/** Returns the clusters that a Service leads to from one, and how. */
export function reachesText({ cluster, reaches }: ServiceInCluster): string {
  return reaches.map((other) => `${named(other.cluster, cluster)}${HOW[other.how]}`).join(", ");
}

/** Returns the clusters that it does not lead to from one, and why. */
export function unreachedText({ cluster, unreached }: ServiceInCluster): string {
  return [...Map.groupBy(unreached, ({ why }) => why)]
    .map(([why, those]) => `${those.map((other) => named(other.cluster, cluster)).join(", ")}: ${why}`)
    .join("; ");
}

export function clusterText(cluster: string | undefined): string {
  return cluster ?? "this cluster";
}

function named(other: string | undefined, from: string | undefined): string {
  return other === from ? "its own" : clusterText(other);
}

function sum(clusters: readonly ServiceInCluster[], of: "ready" | "notReady"): number {
  return clusters.reduce((total, one) => total + one[of], 0);
}
