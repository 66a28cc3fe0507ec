import { ageOf, amountText } from "../../api/wording.ts";
import type { WaitingWorkload } from "../explain/queue-waiting.ts";
import type { QueueStatus } from "../explain/queues.ts";
import { reasonLine, reasonsOf } from "../explain/reasons.ts";
import { type Columns, tableOf } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

/** Shows Kueue's queues, and below them the first few workloads that wait in each. Empty without queues. */
export function queuesText(queues: readonly QueueStatus[], now: number, terminal: Terminal): string[] {
  if (queues.length === 0) return [];
  const columns: Columns<QueueStatus> = {
    QUEUE: ({ name }) => name,
    ADMITTED: ({ admitted }) => String(admitted),
    WAITING: ({ pending }) => String(pending),
    "FOLLOWS MEMBERS": ({ followsMembers }) => (followsMembers ? "yes" : "no"),
    "QUOTA USED/ALL": (queue) =>
      [...quotaTexts(queue), ...(queue.stopped === undefined ? [] : [terminal.paint("red", queue.stopped)])].join("; "),
  };
  return [
    "",
    tableOf(queues, columns, terminal.width, ["FOLLOWS MEMBERS", "ADMITTED"]) ?? "",
    ...queues.flatMap((queue) => waitingLines(queue, now, terminal)),
  ];
}

function quotaTexts({ flavors }: QueueStatus): string[] {
  return flavors.map(({ name, quotas }) => {
    const shares = quotas.map(({ resource, used, nominal }) => {
      return `${resource} ${amountText(resource, used)}/${amountText(resource, nominal)}`;
    });
    return `${name}: ${shares.join(", ")}`;
  });
}

function waitingLines({ name, pending, waiting }: QueueStatus, now: number, terminal: Terminal): string[] {
  const lines = waiting.flatMap((workload) => workloadLines(workload, name, now, terminal));
  const rest = pending - waiting.length;
  return waiting.length > 0 && rest > 0 ? [...lines, `${rest} more wait in ${name}`] : lines;
}

function workloadLines(
  { namespace, kind, name, since, why, waitsFor }: WaitingWorkload,
  queue: string,
  now: number,
  terminal: Terminal,
): string[] {
  const who = terminal.paint("red", `${kind} ${namespace}/${name}`);
  const reasons = why.flatMap((message) => reasonsOf(message).map(reasonLine));
  const found = waitsFor === undefined ? reasons : [waitsFor, ...reasons];
  return [`${who} waits in ${queue} for ${ageOf(since, now) ?? "?"}`, ...found.map((line) => `  ${line}`)];
}
