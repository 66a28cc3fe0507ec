import { Argument } from "commander";
import { z } from "zod";
import { clusterNameProblem } from "../../api/cluster.ts";
import { clusterOfNode, virtualNodeName } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { realClock } from "../../runtime/clock.ts";
import { readHostStatus } from "../explain/host.ts";
import { readMemberDetail } from "../explain/member.ts";
import { inMember, type NamespaceStatus, readAllNamespaces, readNamespace } from "../explain/namespace.ts";
import { QueueReader } from "../explain/queues.ts";
import { readJourney } from "../explain/read-pod.ts";
import { readWorkload } from "../explain/read-workload.ts";
import { readService } from "../explain/service.ts";
import { readWholeObject } from "../explain/whole-object.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { type Hidden, OTHER_PODS, ofViewers } from "../shared/hidden.ts";
import { refusing, toggle, withGlobals } from "../shared/input.ts";
import { MemberClients, memberOpener, type OpenMember } from "../shared/open-member.ts";
import { type Outcome, printOutcome } from "../shared/output.ts";
import { asViewer, readable } from "../shared/reading.ts";
import { didYouMean } from "../shared/suggestion.ts";
import type { Terminal } from "../shared/terminal.ts";
import { SUBJECT_NAMES, subjectOf } from "../simulation/subjects.ts";
import type { WorkloadKind } from "../simulation/workloads.ts";
import { followStatus } from "./follow.ts";
import { membersText, memberText } from "./members-text.ts";
import { namespaceText } from "./namespace-text.ts";
import { journeyText } from "./pod-text.ts";
import { serviceText, wholeObjectText } from "./whole-text.ts";
import { workloadText } from "./workload-text.ts";

/** `word` names a delegated type, which the host knows. */
type Target =
  | { readonly kind: "Member"; readonly name: string }
  | { readonly kind: WorkloadKind | "Service"; readonly name: string; readonly word?: never }
  | { readonly kind?: never; readonly word: string; readonly name: string };

const input = withGlobals({
  namespace: z.string().optional(),
  allNamespaces: toggle,
  watch: toggle,
  type: z.string().optional(),
  name: z.string().optional(),
}).transform(({ type, name, ...rest }, context) => {
  const target = targetOf(type, name, context);
  if (rest.allNamespaces && (target !== undefined || rest.namespace !== undefined)) {
    refusing(context)("allNamespaces", "shows all namespaces; leave it out to show one, or one object");
  }
  return { ...rest, target };
});
type StatusInput = z.output<typeof input>;

export const command: Equip = equipped({
  description:
    "Shows all members: whether each is ready and why not, its version, nodes, room and pods; and Kueue's queues, if the host " +
    "has them: their quotas, what waits and what for. Of one member, pod, workload, Service or " +
    "whole object: where it is, what happened to it and when, a reason for each member that does not take it, what is wrong " +
    "and what to do. With a namespace alone, or -A: what members have of it, and why some pods wait. All of it is read from " +
    "the host, but for when a pod's delegate was made, where its member is open to users.",
  arguments: [
    new Argument(
      "[type]",
      `member, ${SUBJECT_NAMES.join(", ")}, a delegated type, or TYPE/NAME, or a member's name alone (default: all members, or with -n what that namespace has in them)`,
    ),
    new Argument("[name]", "name of the member, pod, workload, Service or object"),
  ],
  flags: flags({
    "-n, --namespace <name>":
      "namespace of the pod, workload or object (default: the context's); alone, shows what it has in members",
    "-A, --all-namespaces": "what all namespaces have in members",
    "-w, --watch": "show it again whenever it changes, until Ctrl-C",
  }),
  examples: {
    status: "all members",
    "status -o json | jq '.clusters[] | select(.ready != \"True\")'": "those in trouble, for a script",
    "status west": "one member: its nodes, its pods, what is wrong with it, and its events",
    "status -n shop": "where the pods of a namespace are, and why some wait",
    "status -A": "the same of all namespaces",
    "status deployment/web -n shop -w": "follow a workload as its pods move",
    "status pod web-0 -n shop": "where one pod is, and why",
    "status deployment/web -n shop": "how a workload is divided, and why pods of it wait",
    "status service/web -n shop": "where the pods of a Service are, and from where it reaches them",
    "status configmap/settings -n shop": "which members have an object that goes to them whole",
  },
  input,
  working: "reading",
  run: async (options, session) => {
    const { client: host, namespace: current } = await session.connect(options, "host");
    const { terminal, signal } = session;
    const own = { host, namespace: options.namespace ?? current };
    const throughHost: OpenMember = (name) => session.openReading(options, name);
    const members = new MemberClients(memberOpener({ host, signal, throughHost }));
    const open: OpenMember = (name) => members.client(name);
    const queues = new QueueReader({ ...own, clock: realClock });
    const read = (): Promise<Outcome> => asViewer(readStatus(options, { ...own, signal, terminal, open, queues }));
    if (options.watch) await followStatus(read, { format: options.output, terminal, clock: realClock, signal });
    printOutcome(terminal, options.output, await read());
  },
});

// A single word is the name of a member.
const OF_OTHERS = "for a workload or an object write its type and name, e.g. `legation status deployment/web`";

interface StatusContext {
  readonly host: ClusterClient;
  /** The namespace in which an account may have its only rights. */
  readonly namespace: string;
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
  readonly open: OpenMember;
  readonly queues: QueueReader;
}

async function readStatus(
  { target, namespace: given, allNamespaces }: StatusInput,
  context: StatusContext,
): Promise<Outcome> {
  const { host, namespace, signal, terminal, open, queues } = context;
  const told = async <T>(
    reading: Promise<T>,
    text: (document: T, now: number, terminal: Terminal) => string,
  ): Promise<Outcome> => {
    const document = await reading;
    return { document, text: text(document, Date.now(), terminal) };
  };
  if (target === undefined) {
    if (allNamespaces) {
      const all = readAllNamespaces(host, signal).then((status) => podsOutcome(status, terminal));
      return orOwn(all, context, [OTHER_PODS]);
    }
    if (given !== undefined) return podsOutcome(await readNamespace(host, given, signal), terminal);
    const overview = told(readHostStatus(host, { namespace, queues }, signal), membersText);
    return orOwn(overview, context, [ofViewers("the members and their state"), OTHER_PODS]);
  }
  const { name, kind } = target;
  if (kind === "Member") {
    const member = told(readMemberDetail(host, { name, namespace, otherwise: OF_OTHERS }, signal), memberText);
    return orOwn(member, context, [ofViewers("the member and its state"), OTHER_PODS], name);
  }
  if (kind === undefined) return told(readWholeObject(host, { ...target, namespace }, signal), wholeObjectText);
  if (kind === "Service") return told(readService(host, { namespace, name }, signal), serviceText);
  if (kind === "Pod") {
    const { journey } = await readJourney(host, { name, namespace }, { open, signal });
    return { document: journey, text: journeyText(journey, terminal) };
  }
  return told(readWorkload(host, { kind, name, namespace }, signal), (document, now) =>
    "whole" in document ? wholeObjectText(document, now, terminal) : workloadText(document, now, terminal),
  );
}

function podsOutcome(status: NamespaceStatus, terminal: Terminal): Outcome {
  const document = { ...status, hidden: status.hidden.map(({ what }) => what) };
  return { document, text: namespaceText(status, Date.now(), terminal) };
}

/** Resolves to the outcome or, where the account may not read it, to what its own namespace has in the members, or in one. */
async function orOwn(
  reading: Promise<Outcome>,
  { host, namespace, signal, terminal }: StatusContext,
  hidden: readonly Hidden[],
  member?: string,
): Promise<Outcome> {
  try {
    return await reading;
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    const seen = await readable(readNamespace(host, namespace, signal));
    // The role for all members is the remedy for an account without any right.
    if (seen === undefined) throw error;
    const status = { ...(member === undefined ? seen : inMember(seen, member)), hidden: [...seen.hidden, ...hidden] };
    return podsOutcome(status, terminal);
  }
}

const MEMBER_WORDS = ["member", "members", "cluster", "clusters"];
const NODE_WORDS = ["node", "nodes", "no"];
const NAMESPACE_WORDS = ["namespace", "namespaces", "ns"];

/** Reads `pod web-0`, `pod/web-0`, or the name of a member. Undefined when neither is given. */
function targetOf(type: string | undefined, second: string | undefined, context: z.RefinementCtx): Target | undefined {
  if (type === undefined) return undefined;
  const refuse = refusing(context);
  const [, word = "", first] = /^([^/]+)(?:\/([^/]+))?$/.exec(type) ?? [];
  const name = first ?? second;
  const lower = word.toLowerCase();
  const isNode = NODE_WORDS.includes(lower);
  const kind = MEMBER_WORDS.includes(lower) ? "Member" : subjectOf(word);
  if (first !== undefined && second !== undefined) {
    return refuse("name", `${JSON.stringify(second)} is a second name; write one`);
  }
  if (name === undefined && (kind !== undefined || isNode)) {
    return refuse(
      "name",
      `is missing; write e.g. \`legation status ${word} ${isNode ? virtualNodeName("west") : "web"}\``,
    );
  }
  if (name === undefined) {
    const meant = didYouMean(word, SUBJECT_NAMES);
    // Whether a member of that name has joined is seen when it is read.
    if (meant === undefined && clusterNameProblem(word) === undefined) return { kind: "Member", name: word };
    const known = SUBJECT_NAMES.join(", ");
    return refuse(
      "type",
      `${JSON.stringify(type)} is nothing that it shows; ${meant === undefined ? "" : `${meant} Or `}write member/NAME, or ${known} or a delegated type with a name: e.g. \`legation status deployment/web\``,
    );
  }
  if (NAMESPACE_WORDS.includes(lower))
    return refuse("type", `to show a namespace, write \`legation status -n ${name}\``);
  // A node of the host's own is no type that members have.
  const member = isNode ? clusterOfNode(name) : undefined;
  if (member !== undefined) return { kind: "Member", name: member };
  return kind === undefined ? { word, name } : { kind, name };
}
