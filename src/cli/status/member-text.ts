import type { NodeKind } from "../../api/cluster-status.ts";
import { parseAmounts } from "../../api/quantity.ts";
import { amountText, counted } from "../../api/wording.ts";
import { agentCertificateWords, credentialsWords } from "../explain/credentials-words.ts";
import type { MemberDetail } from "../explain/member.ts";
import { troubleText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { type Columns, tableOf } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { eventsText } from "./events-text.ts";
import { membersText } from "./members-text.ts";
import { countsText } from "./workload-text.ts";

export function memberText(member: MemberDetail, now: number, terminal: Terminal): string {
  const { name, node, server, agent, credentials, nodeKinds, statuses, troubles, events = [] } = member;
  // A trouble tells the reason below, with its time and remedy.
  const row = { ...member, reason: troubles.length === 0 ? member.reason : undefined };
  return [
    membersText({ clusters: [row], waiting: { unplaced: 0, gated: 0 } }, now, terminal),
    `${name} is Node ${node} here${server === undefined ? "" : `; its API server is ${server}`}`,
    ...(agent === undefined
      ? []
      : [
          `its agent, of version ${agent.version ?? "unknown"}, last connected at ${agent.connectedSince}` +
            agentCertificateWords(agent, (at) => at),
        ]),
    credentialsWords(credentials, (at) => at),
    `pods of this cluster there: ${countsText(statuses) || "none"}${othersText(member)}`,
    ...(nodeKinds.length === 0 ? [] : ["", ...kindsText(nodeKinds, terminal)]),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    ...(events.length === 0 ? [] : ["", eventsText(events, terminal)]),
    `its pods: \`kubectl get pods -A --field-selector spec.nodeName=${node}\``,
    ...hiddenText(member.hidden, terminal),
  ].join("\n");
}

function othersText({ requestedByOthers }: MemberDetail): string {
  const { pods } = requestedByOthers;
  const amounts = parseAmounts(requestedByOthers);
  const parts = ["cpu", "memory"].flatMap((resource) => {
    const amount = amounts[resource];
    return amount === undefined ? [] : [`${resource} ${amountText(resource, amount)}`];
  });
  const those = pods === undefined ? "pods of others" : `${counted(Number(pods))} of others`;
  return parts.length === 0 ? "" : `; ${those} ask for ${parts.join(", ")}`;
}

function kindsText(kinds: readonly NodeKind[], terminal: Terminal): string[] {
  const amount = ({ allocatable }: NodeKind, resource: string): string =>
    amountText(resource, parseAmounts(allocatable)[resource] ?? 0);
  const columns: Columns<NodeKind> = {
    NODES: ({ count }) => String(count),
    CPU: (kind) => amount(kind, "cpu"),
    MEMORY: (kind) => amount(kind, "memory"),
    PODS: (kind) => amount(kind, "pods"),
    LABELS: ({ labels = {}, taints = [] }) =>
      [
        ...Object.entries(labels).map(([key, value]) => `${key}=${value}`),
        ...taints.map(({ key, value, effect }) => `taint ${key}${value === undefined ? "" : `=${value}`}:${effect}`),
      ].join(", "),
  };
  return tableOf(kinds, columns, terminal.width, ["PODS", "MEMORY", "CPU"]);
}
