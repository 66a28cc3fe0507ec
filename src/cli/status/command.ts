import { Argument } from "commander";
import { z } from "zod";
import { clusterNameProblem } from "../../api/cluster.ts";
import { clusterOfNode, virtualNodeName } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { realClock } from "../../runtime/clock.ts";
import { readMemberDetail } from "../explain/member.ts";
import { readHostStatus } from "../explain/members.ts";
import { readAllNamespaces, readNamespace } from "../explain/namespace.ts";
import { readJourney } from "../explain/read-pod.ts";
import { readWorkload } from "../explain/read-workload.ts";
import { readWholeObject } from "../explain/whole-object.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { toggle, withGlobals } from "../shared/input.ts";
import { memberOpener, type OpenMember } from "../shared/open-member.ts";
import { type Outcome, printOutcome } from "../shared/output.ts";
import { asViewer } from "../shared/reading.ts";
import type { Session } from "../shared/session.ts";
import { didYouMean } from "../shared/suggestion.ts";
import { SUBJECT_NAMES, subjectOf } from "../simulation/subjects.ts";
import type { WorkloadKind } from "../simulation/workloads.ts";
import { followStatus } from "./follow.ts";
import { memberText } from "./member-text.ts";
import { membersText } from "./members-text.ts";
import { namespaceText } from "./namespace-text.ts";
import { journeyText } from "./pod-text.ts";
import { wholeJobText, wholeObjectText } from "./whole-text.ts";
import { workloadText } from "./workload-text.ts";

/** `word` names a delegated type, which the host knows. */
type Target =
  | { readonly kind: WorkloadKind | "Member"; readonly name: string; readonly word?: never }
  | { readonly word: string; readonly name: string };

/** `legation status` */
export const command: Equip = equipped({
  description:
    "Shows all members: whether each is ready and why not, its version, nodes, room and pods. Of one member, pod, workload or " +
    "whole object: where it is, what happened to it and when, a reason for each member that does not take it, what is wrong " +
    "and what to do. With a namespace alone, or -A: what members have of it, and why some pods wait. All of it is read from " +
    "the host, but for when a pod's delegate was made, where its member is open to users.",
  arguments: [
    new Argument(
      "[type]",
      `member, ${SUBJECT_NAMES.join(", ")}, a delegated type, or TYPE/NAME, or a member's name alone (default: all members, or with -n what that namespace has in them)`,
    ),
    new Argument("[name]", "name of the member, pod, workload or object"),
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
    "status configmap/settings -n shop": "which members have an object that goes to them whole",
  },
  input: withGlobals({
    namespace: z.string().optional(),
    allNamespaces: toggle,
    watch: toggle,
    type: z.string().optional(),
    name: z.string().optional(),
  }).transform(({ type, name, ...rest }, context) => {
    const target = targetOf(type, name, context);
    if (rest.allNamespaces && (target !== undefined || rest.namespace !== undefined)) {
      const message = "shows all namespaces; leave it out to show one, or one object";
      context.addIssue({ code: "custom", path: ["allNamespaces"], message });
    }
    return { ...rest, target };
  }),
  working: "reading",
  run: async (options, session) => {
    const { client, namespace: current } = await session.connect(options, "host");
    const { target, namespace, allNamespaces, output: format } = options;
    const { terminal, signal } = session;
    const open = once(
      memberOpener({ host: client, signal, throughHost: (name) => session.openReading(options, name) }),
    );
    const readOne = (): Promise<Outcome> => {
      if (target !== undefined)
        return readTarget(client, { namespace: namespace ?? current, ...target }, session, open);
      if (namespace === undefined && !allNamespaces) return readMemberDetails(client, session);
      return readPods(client, namespace, session);
    };
    const read = (): Promise<Outcome> => asViewer(readOne());
    if (options.watch) await followStatus(read, { format, terminal, clock: realClock, signal });
    printOutcome(terminal, format, await read());
  },
});

async function readMemberDetails(client: ClusterClient, { signal, terminal }: Session): Promise<Outcome> {
  const document = await readHostStatus(client, signal);
  return { document, text: membersText(document, Date.now(), terminal) };
}

/** `name`: absent for all namespaces. */
async function readPods(
  client: ClusterClient,
  name: string | undefined,
  { signal, terminal }: Session,
): Promise<Outcome> {
  const status = await (name === undefined ? readAllNamespaces(client, signal) : readNamespace(client, name, signal));
  const document = { ...status, hidden: status.hidden.map(({ what }) => what) };
  return { document, text: namespaceText(status, Date.now(), terminal) };
}

async function readTarget(
  client: ClusterClient,
  target: Target & { readonly namespace: string },
  { signal, terminal }: Session,
  open: OpenMember,
): Promise<Outcome> {
  if (target.word !== undefined) {
    const document = await readWholeObject(client, target, signal);
    return { document, text: wholeObjectText(document, Date.now(), terminal) };
  }
  const { kind, name } = target;
  if (kind === "Member") {
    const document = await readMemberDetail(client, name, signal);
    return { document, text: memberText(document, Date.now(), terminal) };
  }
  if (kind === "Pod") {
    const { journey: document } = await readJourney(client, target, { open, signal });
    return { document, text: journeyText(document, terminal) };
  }
  const document = await readWorkload(client, { ...target, kind }, signal);
  return {
    document,
    text: "whole" in document ? wholeJobText(document, terminal) : workloadText(document, Date.now(), terminal),
  };
}

/** Opens each member once, however often it is shown. */
function once(open: OpenMember): OpenMember {
  const opened = new Map<string, ReturnType<OpenMember>>();
  return (name) => {
    const client = opened.get(name) ?? open(name);
    opened.set(name, client);
    return client;
  };
}

const MEMBER_WORDS: readonly string[] = ["member", "members", "cluster", "clusters"];
const NODE_WORDS: readonly string[] = ["node", "nodes", "no"];

/** Reads `pod web-0`, `pod/web-0`, or the name of a member. Undefined when neither is given. */
function targetOf(type: string | undefined, second: string | undefined, context: z.RefinementCtx): Target | undefined {
  if (type === undefined) return undefined;
  const refuse = (argument: string, message: string): undefined =>
    void context.addIssue({ code: "custom", path: [argument], message });
  const [, word = "", first] = /^([^/]+)(?:\/([^/]+))?$/.exec(type) ?? [];
  const name = first ?? second;
  const kind = subjectOf(word);
  const lower = word.toLowerCase();
  const isMember = MEMBER_WORDS.includes(lower);
  const isNode = NODE_WORDS.includes(lower);
  if (first !== undefined && second !== undefined) {
    return refuse("name", `${JSON.stringify(second)} is a second name; write one`);
  }
  if (name === undefined && (kind !== undefined || isMember || isNode)) {
    const example = isMember ? "member west" : isNode ? "node legation-west" : `${word} web`;
    return refuse("name", `is missing; write e.g. \`legation status ${example}\``);
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
  if (isMember) return { kind: "Member", name };
  if (isNode) {
    const member = clusterOfNode(name);
    if (member !== undefined) return { kind: "Member", name: member };
    return refuse(
      "name",
      `${JSON.stringify(name)} is a node of this cluster's own; write a virtual node, e.g. ${virtualNodeName("west")}`,
    );
  }
  return kind === undefined ? { word, name } : { kind, name };
}
