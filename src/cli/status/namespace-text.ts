import type { NamespaceStatus } from "../explain/namespace.ts";
import { age, counted, table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

/** Formats the pods of a namespace for people. */
export function namespaceText({ namespace, pods, onHost }: NamespaceStatus, now: number, terminal: Terminal): string {
  const waiting = pods.filter((pod) => pod.waits !== undefined).length;
  const without = waiting === 0 ? "" : `, ${waiting} of them without a member`;
  const summary = `Namespace ${namespace}: ${counted(pods.length, "delegated pod")}${without}`;
  const note =
    onHost === 0
      ? []
      : [`${counted(onHost)} ${onHost === 1 ? "is" : "are"} not delegated (see \`legation status pod NAME\`)`];
  if (pods.length === 0) return [summary, ...note].join("\n");
  const isAnyWaiting = waiting > 0;
  const rows = pods.map((pod) => [
    pod.name,
    `${pod.containers.ready}/${pod.containers.all}`,
    pod.phase,
    pod.cluster ?? "-",
    pod.memberNode ?? "-",
    pod.created === undefined ? "-" : age(now - Date.parse(pod.created)),
    ...(isAnyWaiting ? [pod.waits === undefined ? "" : `${pod.waits.reason}: ${pod.waits.message}`] : []),
  ]);
  const header = ["POD", "READY", "STATUS", "CLUSTER", "NODE", "AGE", ...(isAnyWaiting ? ["WHY"] : [])];
  return [summary, table(header, rows, terminal.width), ...note].join("\n");
}
