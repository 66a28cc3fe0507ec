import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { events } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { clientOf } from "./clients.ts";
import { podsOf } from "./pods-of.ts";

// The last of a namespace's events tell why its pods are where they are.
const MOST_EVENTS = 20;

function lineOf({ metadata, spec, status }: Stored<Pod>): string {
  const conditions = (status?.conditions ?? [])
    .filter(({ status: holds }) => holds !== "True")
    .map(({ type, reason = "", message = "" }) => `not ${type} ${reason} ${message}`.trim());
  const words = [
    metadata.name,
    metadata.uid,
    status?.phase ?? "no phase",
    `on ${spec?.nodeName ?? "no node"}`,
    ...(metadata.deletionTimestamp === undefined ? [] : [`being deleted since ${metadata.deletionTimestamp}`]),
    ...conditions,
  ];
  return `  ${words.join("; ")}`;
}

/** Writes a namespace's pods and events to stderr before it is emptied. Never rejects. */
export async function tellPods(cluster: Cluster, namespace: string): Promise<void> {
  const client = clientOf(cluster);
  try {
    const [pods, { items: told }] = await Promise.all([
      podsOf(client, namespace),
      client.list(events, { namespace, limit: 500 }),
    ]);
    const lines = told
      .map(({ metadata, involvedObject, reason, message }) =>
        [metadata.creationTimestamp, `${involvedObject?.kind}/${involvedObject?.name}`, reason, message].join(" "),
      )
      .sort()
      .slice(-MOST_EVENTS)
      .map((line) => `  ${line}`);
    const heading = `${cluster.name}, namespace ${namespace}: ${pods.length} pods`;
    process.stderr.write(`${[heading, ...pods.map(lineOf), ...lines].join("\n")}\n`);
  } catch (error) {
    process.stderr.write(`${cluster.name}, namespace ${namespace}: ${error}\n`);
  } finally {
    await client.close();
  }
}
