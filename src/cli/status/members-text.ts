import type { NodeKind } from "../../api/cluster-status.ts";
import { HOST_LABEL, LEADERLESS_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { parseAmounts } from "../../api/quantity.ts";
import { ageOf, amountText, counted } from "../../api/wording.ts";
import { agentCertificateWords, credentialsWords } from "../explain/credentials-words.ts";
import type { HostStatus, MemberStatus } from "../explain/host.ts";
import type { MemberDetail } from "../explain/member.ts";
import { troubleText } from "../explain/text.ts";
import { hiddenText } from "../shared/hidden.ts";
import { type Columns, some, tableOf, textOf } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { eventsText } from "./pod-text.ts";
import { queuesText } from "./queues-text.ts";
import { countsText } from "./workload-text.ts";

// The least important first: capacities count most where pods wait.
const OPTIONAL = ["AGE", "VERSION", "NODES", "REACHED", "MEMORY FREE/ALL", "CPU FREE/ALL", "PODS RUN/ALL"];

export function membersText(
  { clusters, waiting, queues = [], hidden }: HostStatus,
  now: number,
  terminal: Terminal,
): string {
  const columns: Columns<MemberStatus> = {
    NAME: ({ name }) => name,
    READY: ({ ready }) => terminal.paint(ready === "True" ? "green" : "red", ready),
    REACHED: (member) => reachedText(member, now),
    VERSION: ({ version }) => version ?? "-",
    NODES: ({ nodes }) => String(nodes ?? "-"),
    "CPU FREE/ALL": ({ cpu }) => `${amountText("cpu", cpu.free)}/${amountText("cpu", cpu.allocatable)}`,
    "MEMORY FREE/ALL": ({ memory }) =>
      `${amountText("memory", memory.free)}/${amountText("memory", memory.allocatable)}`,
    "PODS RUN/ALL": ({ pods }) => `${pods.running}/${pods.unfinished}`,
    AGE: ({ created }) => ageOf(created, now) ?? "-",
    ...(clusters.some(({ reason }) => reason !== undefined) && { REASON: ({ reason }) => reason ?? "" }),
  };
  return textOf([
    tableOf(clusters, columns, terminal.width, OPTIONAL) ?? "no member cluster has joined: see `legation join --help`",
    waitingLine(waiting),
    accessLine(clusters),
    heldText(clusters),
    ...queuesText(queues, now, terminal),
    ...hiddenText(hidden, terminal),
  ]);
}

/** Returns which members users of the host reach, and by which names of users and groups. */
function accessLine(clusters: readonly MemberStatus[]): string | undefined {
  const open = clusters.flatMap(({ name, access }) =>
    access === undefined ? [] : [`${name} (as ${access.prefix}USER)`],
  );
  return open.length === 0 ? undefined : `open to users by \`legation kubeconfig NAME\`: ${some(open)}`;
}

/** Returns `directly`, or `agent 0.1.0, 5m`: its version, and since when it is connected. */
function reachedText({ connection, agent, ready }: MemberStatus, now: number): string {
  if (connection === undefined) return "-";
  if (connection === "Direct") return "directly";
  if (agent === undefined) return "agent";
  const since = ready === "True" ? `, ${ageOf(agent.connectedSince, now)}` : "";
  return `agent ${agent.version ?? "?"}${since}`;
}

/** Returns how to inspect and end delegates that the restored host does not know. */
function heldText(clusters: readonly MemberStatus[]): string | undefined {
  const holding = clusters.filter(({ held = 0 }) => held > 0);
  if (holding.length === 0) return undefined;
  const counts = holding.map(({ name, held = 0 }) => `${held} in ${name}`).join(", ");
  return [
    `pods that run though this cluster does not know them: ${counts}`,
    "  it was restored from a backup that is older than they are. See what runs for it in a member:",
    `    kubectl --context MEMBER get pods -A -l ${HOST_LABEL}=$(kubectl get namespace kube-system -o jsonpath={.metadata.uid})`,
    "  let them end, delete there what you do not want, or let all of them go:",
    `    kubectl -n ${SYSTEM_NAMESPACE} annotate lease legation-controller ${LEADERLESS_ANNOTATION}-`,
    `    kubectl -n ${SYSTEM_NAMESPACE} rollout restart deployment legation-controller`,
  ].join("\n");
}

function waitingLine({ unplaced, gated }: HostStatus["waiting"]): string | undefined {
  const parts = [unplaced > 0 && `${unplaced} not placed yet`, gated > 0 && `${gated} held back by scheduling gates`];
  const told = parts.filter((part) => part !== false).join(", ");
  return told === "" ? undefined : `pods without a member: ${told} (see \`legation status pod NAME\`)`;
}

export function memberText(member: MemberDetail, now: number, terminal: Terminal): string {
  const { name, node, server, agent, credentials, nodeKinds, statuses, troubles, events = [] } = member;
  // A trouble tells the reason below, with its time and remedy.
  const row = { ...member, reason: troubles.length === 0 ? member.reason : undefined };
  return textOf([
    membersText({ clusters: [row], waiting: { unplaced: 0, gated: 0 } }, now, terminal),
    `${name} is Node ${node} here${server === undefined ? "" : `; its API server is ${server}`}`,
    agent &&
      `its agent, of version ${agent.version ?? "unknown"}, last connected at ${agent.connectedSince}` +
        agentCertificateWords(agent, (at) => at),
    credentialsWords(credentials, (at) => at),
    `pods of this cluster there: ${countsText(statuses) || "none"}${othersText(member)}`,
    nodeKinds.length > 0 && `\n${kindsText(nodeKinds, terminal)}`,
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    events.length > 0 && `\n${eventsText(events, terminal)}`,
    `its pods: \`kubectl get pods -A --field-selector spec.nodeName=${node}\``,
    ...hiddenText(member.hidden, terminal),
  ]);
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

function kindsText(kinds: readonly NodeKind[], terminal: Terminal): string | undefined {
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
