import { Argument } from "commander";
import { z } from "zod";
import type { ClusterClient } from "../../kube/client.ts";
import { realClock } from "../../runtime/clock.ts";
import { readHostStatus } from "../explain/members.ts";
import { readNamespace } from "../explain/namespace.ts";
import { readJourney } from "../explain/read-pod.ts";
import { readWorkload } from "../explain/read-workload.ts";
import { readWholeObject } from "../explain/whole-object.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { toggle, withGlobals } from "../shared/input.ts";
import { type Outcome, printOutcome } from "../shared/output.ts";
import { asViewer } from "../shared/reading.ts";
import type { Session } from "../shared/session.ts";
import { didYouMean } from "../shared/suggestion.ts";
import { SUBJECT_NAMES, subjectOf } from "../simulation/subjects.ts";
import type { WorkloadKind } from "../simulation/workloads.ts";
import { followStatus } from "./follow.ts";
import { membersText } from "./members-text.ts";
import { namespaceText } from "./namespace-text.ts";
import { journeyText } from "./pod-text.ts";
import { wholeJobText, wholeObjectText } from "./whole-text.ts";
import { workloadText } from "./workload-text.ts";

/** `word` names a delegated type, which the host knows. */
type Target =
  | { readonly kind: WorkloadKind; readonly name: string; readonly word?: never }
  | { readonly word: string; readonly name: string };

/** `legation status` */
export const command: Equip = equipped({
  description:
    "Shows each member: whether it is ready and why not, its version and nodes, what its nodes offer and what this " +
    "host's pods leave of it, and how many of them run there. With a namespace alone: its pods, their members, and why some have none. With a pod: what happened to it and when, a reason for each " +
    "member that refused it, its events, and what is wrong with its member. With a workload: how many pods its scheduling " +
    "preferences give to each member and how many that has, and what pods without a member wait for. With a whole Job: its member, and its status there. With an object of a delegated type: what each member has of it. All of it is read from the host.",
  arguments: [
    new Argument(
      "[type]",
      `${SUBJECT_NAMES.join(", ")}, a delegated type, or TYPE/NAME (default: all members, or with -n the pods of that namespace)`,
    ),
    new Argument("[name]", "name of the pod or workload on the host"),
  ],
  flags: flags({
    "-n, --namespace <name>":
      "namespace of the pod, workload or object (default: the context's); alone, shows the pods there",
    "-w, --watch": "show it again whenever it changes, until Ctrl-C",
  }),
  examples: {
    status: "all members",
    "status -o json | jq '.clusters[] | select(.ready != \"True\")'": "those in trouble, for a script",
    "status -n shop": "where the pods of a namespace are, and why some wait",
    "status deployment/web -n shop -w": "follow a workload as its pods move",
    "status pod web-0 -n shop": "where one pod is, and why",
    "status deployment/web -n shop": "how a workload is divided, and why pods of it wait",
    "status configmap/settings -n shop": "which members have an object that goes to them whole",
  },
  input: withGlobals({
    namespace: z.string().optional(),
    watch: toggle,
    type: z.string().optional(),
    name: z.string().optional(),
  }).transform(({ type, name, ...rest }, context) => ({ ...rest, target: targetOf(type, name, context) })),
  working: "reading",
  run: async (options, session) => {
    const { client, namespace: current } = await session.connect(options, "host");
    const { target, namespace, output: format } = options;
    const { terminal, signal } = session;
    const readOne = (): Promise<Outcome> => {
      if (target !== undefined) return readTarget(client, { namespace: namespace ?? current, ...target }, session);
      return namespace === undefined ? readMembers(client, session) : readPods(client, namespace, session);
    };
    const read = (): Promise<Outcome> => asViewer(readOne());
    if (options.watch) await followStatus(read, { format, terminal, clock: realClock, signal });
    printOutcome(terminal, format, await read());
  },
});

async function readMembers(client: ClusterClient, { signal, terminal }: Session): Promise<Outcome> {
  const document = await readHostStatus(client, signal);
  return { document, text: membersText(document, Date.now(), terminal) };
}

async function readPods(client: ClusterClient, name: string, { signal, terminal }: Session): Promise<Outcome> {
  const document = await readNamespace(client, name, signal);
  return { document, text: namespaceText(document, Date.now(), terminal) };
}

async function readTarget(
  client: ClusterClient,
  target: Target & { readonly namespace: string },
  { signal, terminal }: Session,
): Promise<Outcome> {
  if (target.word !== undefined) {
    const document = await readWholeObject(client, target, signal);
    return { document, text: wholeObjectText(document, Date.now(), terminal) };
  }
  if (target.kind === "Pod") {
    const { journey: document } = await readJourney(client, target, signal);
    return { document, text: journeyText(document, terminal) };
  }
  const document = await readWorkload(client, target, signal);
  return {
    document,
    text: "whole" in document ? wholeJobText(document, terminal) : workloadText(document, terminal),
  };
}

/** Reads `pod web-0` or `pod/web-0`. Undefined when neither is given: all members. */
function targetOf(type: string | undefined, second: string | undefined, context: z.RefinementCtx): Target | undefined {
  if (type === undefined) return undefined;
  const refuse = (argument: string, message: string): undefined =>
    void context.addIssue({ code: "custom", path: [argument], message });
  const [, word = "", first] = /^([^/]+)(?:\/([^/]+))?$/.exec(type) ?? [];
  const kind = subjectOf(word);
  if (kind === undefined && (word === "" || (first ?? second) === undefined)) {
    const known = SUBJECT_NAMES.join(", ");
    const meant = didYouMean(word, SUBJECT_NAMES);
    return refuse(
      "type",
      `${JSON.stringify(type)} is nothing that it shows; ${meant === undefined ? "" : `${meant} Or `}write ${known} or a delegated type, with a name: e.g. \`legation status deployment/web\``,
    );
  }
  if (first !== undefined && second !== undefined) {
    return refuse("name", `${JSON.stringify(second)} is a second name; write one pod or workload`);
  }
  const name = first ?? second;
  if (name === undefined) return refuse("name", `is missing; write e.g. \`legation status ${word} web\``);
  return kind === undefined ? { word, name } : { kind, name };
}
