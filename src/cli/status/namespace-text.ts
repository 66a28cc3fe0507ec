import { ageOf, counted, countedAre } from "../../api/wording.ts";
import type { NamespaceObject, NamespacePod, NamespaceStatus } from "../explain/namespace.ts";
import { hiddenLine, hiddenText } from "../shared/hidden.ts";
import { type Columns, tableOf, textOf } from "../shared/output.ts";
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
  return textOf([
    `${subject}: ${counted(pods.length, "delegated pod")}${without}${whole}`,
    podsTable(pods, isAll, now, terminal),
    pods.length > 0 && objects.length > 0 && "",
    objectsTable(objects, isAll, terminal),
    onHost > 0 && `${countedAre(onHost)} not delegated (see \`legation status pod NAME\`)`,
    ...hiddenText(hidden, terminal),
  ]);
}

function podsTable(pods: readonly NamespacePod[], isAll: boolean, now: number, terminal: Terminal): string | undefined {
  const columns: Columns<NamespacePod> = {
    ...(isAll && { NAMESPACE: ({ namespace }) => namespace }),
    POD: ({ name }) => name,
    READY: ({ containers }) => `${containers.ready}/${containers.all}`,
    STATUS: ({ status }) => status,
    CLUSTER: ({ cluster }) => cluster ?? "-",
    NODE: ({ memberNode }) => memberNode ?? "-",
    AGE: ({ created }) => ageOf(created, now) ?? "-",
    ...(pods.some(({ waits }) => waits !== undefined) && {
      WHY: ({ waits }) => (waits === undefined ? "" : `${waits.reason}: ${waits.message}`),
    }),
  };
  return tableOf(pods, columns, terminal.width, ["AGE", "NODE", "READY"]);
}

function objectsTable(objects: readonly NamespaceObject[], isAll: boolean, terminal: Terminal): string | undefined {
  const columns: Columns<NamespaceObject> = {
    ...(isAll && { NAMESPACE: ({ namespace }) => namespace || "-" }),
    OBJECT: ({ kind, name }) => `${kind.toLowerCase()}/${name}`,
    CLUSTERS: ({ clusters }) => clusters.join(",") || "-",
    STATE: ({ state }) => state,
  };
  return tableOf(objects, columns, terminal.width);
}
