import { ageOf, counted, countedAre } from "../../api/wording.ts";
import type { NamespaceObject, NamespacePod, NamespaceStatus } from "../explain/namespace.ts";
import { hiddenLine, hiddenText } from "../shared/hidden.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

export function namespaceText(status: NamespaceStatus, now: number, terminal: Terminal): string {
  const { namespace, member, pods, objects, onHost = 0 } = status;
  const hidden = hiddenLine(status.hidden);
  const waiting = pods.filter((pod) => pod.waits !== undefined).length;
  const without = waiting === 0 ? "" : `, ${waiting} of them without a member`;
  const whole = objects.length === 0 ? "" : `; ${counted(objects.length, "whole object")}`;
  const where = member === undefined ? "" : ` in ${member}`;
  const subject = namespace === undefined ? "All namespaces" : `Namespace ${namespace}${where}`;
  const isAll = namespace === undefined;
  return [
    `${subject}: ${counted(pods.length, "delegated pod")}${without}${whole}`,
    ...(pods.length === 0 ? [] : [podsTable(pods, { isAll, now, terminal })]),
    ...(objects.length === 0 ? [] : [...(pods.length === 0 ? [] : [""]), objectsTable(objects, isAll, terminal)]),
    ...(onHost === 0 ? [] : [`${countedAre(onHost)} not delegated (see \`legation status pod NAME\`)`]),
    ...hiddenText(hidden, terminal),
  ].join("\n");
}

function podsTable(
  pods: readonly NamespacePod[],
  { isAll, now, terminal }: { readonly isAll: boolean; readonly now: number; readonly terminal: Terminal },
): string {
  const isAnyWaiting = pods.some(({ waits }) => waits !== undefined);
  const rows = pods.map((pod) => [
    ...(isAll ? [pod.namespace] : []),
    pod.name,
    `${pod.containers.ready}/${pod.containers.all}`,
    pod.status,
    pod.cluster ?? "-",
    pod.memberNode ?? "-",
    ageOf(pod.created, now) ?? "-",
    ...(isAnyWaiting ? [pod.waits === undefined ? "" : `${pod.waits.reason}: ${pod.waits.message}`] : []),
  ]);
  const header = ["POD", "READY", "STATUS", "CLUSTER", "NODE", "AGE", ...(isAnyWaiting ? ["WHY"] : [])];
  return table(isAll ? ["NAMESPACE", ...header] : header, rows, terminal.width, ["AGE", "NODE", "READY"]);
}

function objectsTable(objects: readonly NamespaceObject[], isAll: boolean, terminal: Terminal): string {
  const rows = objects.map(({ namespace, kind, name, clusters, state }) => [
    ...(isAll ? [namespace === "" ? "-" : namespace] : []),
    `${kind.toLowerCase()}/${name}`,
    clusters.join(",") || "-",
    state,
  ]);
  const header = ["OBJECT", "CLUSTERS", "STATE"];
  return table(isAll ? ["NAMESPACE", ...header] : header, rows, terminal.width);
}
