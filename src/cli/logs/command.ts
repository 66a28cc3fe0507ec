import { Argument } from "commander";
import { z } from "zod";
import { jobs, pods } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { HOST, openClusters, wantedClusters } from "../multicluster/clusters.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { Failure } from "../shared/failure.ts";
import { Gaps } from "../shared/gaps.ts";
import { duration, refusing, toggle, withGlobals } from "../shared/input.ts";
import { some } from "../shared/output.ts";
import { asViewer, notOnHost } from "../shared/reading.ts";
import type { Session } from "../shared/session.ts";
import { type FollowContext, followLogs, followPods } from "./follow.ts";
import { LinePrinter } from "./lines.ts";
import { podsOfJob, podWith, selectedPods, showLogs } from "./show.ts";
import { named, openOrTell, openSource, placesOf } from "./sources.ts";

/** `name` of a Job or a pod, or the labels that a `selector` asks for. */
interface Target {
  readonly kind: "job" | "hostPod" | "pod" | "selector";
  readonly name: string;
}

const JOBS = ["job", "jobs", "job.batch", "jobs.batch"];
const PODS = ["pod", "pods", "po"];
const POD_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const MAX_STREAMS = 100;

const input = withGlobals({
  target: z.string().optional(),
  selector: z.string().optional(),
  clusters: wantedClusters.optional(),
  namespace: z.string().optional(),
  follow: toggle,
  container: z.string().optional(),
  allContainers: toggle,
  tail: wholeNumber(0, "10").optional(),
  since: duration.optional(),
  timestamps: toggle,
  maxLogRequests: wholeNumber(1, "500").default(MAX_STREAMS),
  memberKubeconfig: z.string().optional(),
}).transform((given, context) => {
  const { target: written, selector, allContainers: all, since: sinceMs, maxLogRequests: maxStreams, ...rest } = given;
  const target = targetOf(written, selector, context);
  const refuse = refusing(context);
  if (target.kind === "job" && rest.clusters !== undefined) {
    refuse("clusters", "is for pods; the members of a Job are on record on the host");
  }
  if (target.kind === "hostPod" && rest.clusters !== undefined) {
    refuse("clusters", "is for pod/NAME and -l; the member of a pod of the host is on record there");
  }
  if (rest.container !== undefined && all) refuse("container", "contradicts --all-containers; give one");
  return { ...rest, target, all, sinceMs, maxStreams };
});
type LogsInput = z.output<typeof input>;

export const command: Equip = equipped({
  description:
    "Shows the logs of all pods of a Job, in all members that have it; of more than one pod each line begins with " +
    "[member/pod]. With -f it goes on until the Job is over. The pods of a whole Job are its member's alone, so its " +
    "logs are read there: with a kubeconfig of your own, else with your own rights through the host if the member is open for " +
    "that, or else with the credentials that the host has of the member. With a pod's NAME it shows the log of that pod of the host, " +
    "and in the same ways the logs of containers that its member added. With pod/NAME or -l it shows the logs of pods in the " +
    "members, whoever made them. What cannot be read is named on standard error, and the rest is shown.",
  arguments: [new Argument("[target]", "job/NAME, a pod's NAME, or pod/NAME; with -l none")],
  flags: flags({
    "-n, --namespace <name>": "namespace of the Job or the pods (default: the context's)",
    "-l, --selector <selector>": "pods with such labels, in the members",
    "--clusters <list>": `of pods: members, '*' for all, and ${HOST}; or a selector of Clusters (default: all members)`,
    "-f, --follow": "go on with what is written, and with pods that start later, until the Job or the pods are over",
    "-c, --container <name>": "container of each pod (default: as kubectl chooses it)",
    "--all-containers": "all containers of each pod; lines begin with [member/pod/container]",
    "--tail <lines>": "only the last lines of each container (default: all)",
    "--since <duration>": "only what was written within this time, e.g. 10m",
    "--timestamps": "begin each line with its time",
    "--max-log-requests <number>": `containers that -f follows at a time (default: ${MAX_STREAMS})`,
    "--member-kubeconfig <file>":
      "of a Job or NAME: kubeconfig of your own for members: its context with the member's name, else its current one " +
      "(default: the way through the host, or the credentials that the host has)",
  }),
  examples: {
    "logs job/sweep -n shop": "all pods of a Job",
    "logs job/sweep -n shop -f --tail 10": "follow it from here on, until it is over",
    "logs job/sweep -n shop --member-kubeconfig members.yaml": "with a kubeconfig of your own for the members",
    "logs web-0 -n shop -c proxy": "a container that the member of a pod added to it",
    "logs -l app=web -n shop --clusters west,east -f": "pods of two members, whoever made them",
  },
  input,
  working: "waiting for logs",
  run: async (options, session) => {
    const host = await session.connect(options, "host");
    const { signal, terminal } = session;
    const gaps = new Gaps((line) => terminal.progress(line));
    const { target, namespace = host.namespace, memberKubeconfig } = options;
    const context: LogsContext = {
      gaps,
      printer: new LinePrinter((bytes) => terminal.write(bytes)),
      signal,
      clock: realClock,
      host: { name: "host", client: host.client, isHost: true },
      open: (place) => openSource(place, { host, choice: options, memberKubeconfig, session }),
      session,
      namespace,
    };
    const { kind, name } = target;
    const ofKind = kind === "job" ? "Job" : "Pod";
    const object = kind === "selector" ? `pods ${name} in ${namespace}` : `${ofKind} ${namespace}/${name}`;
    if (kind === "job") await logsOfJob(object, name, options, context);
    else if (kind === "hostPod") await logsOfHostPod(object, name, options, context);
    else await logsOfPods(object, options, context);
    if (gaps.lacking.length === 0) return;
    // A gap of a pod is `member/pod`, and one of a whole member its name.
    const misses = kind === "job" && gaps.lacking.some((name) => !name.includes("/"));
    throw new Failure("failure", {
      object,
      problem: `logs are missing, as told above: ${some(gaps.lacking)}`,
      remedy: misses && memberKubeconfig === undefined ? ANOTHER_WAY : undefined,
    });
  },
});

const ANOTHER_WAY =
  "where this machine does not reach a member as the host does, give --member-kubeconfig FILE (docs/whole-jobs.md#reading-logs)";

interface LogsContext extends FollowContext {
  readonly session: Session;
  readonly namespace: string;
}

async function logsOfJob(object: string, name: string, options: LogsInput, context: LogsContext): Promise<void> {
  const { host, open, gaps, signal, namespace } = context;
  const job = await asViewer(host.client.find(jobs, { namespace, name }, { signal }));
  if (job === undefined) throw notOnHost(object);
  if (options.follow) return followLogs(job, options, context);
  const places = placesOf(job);
  if (places.length === 0) {
    const remedy = `\`legation status job/${name}\` says why; -f waits for it`;
    throw new Failure("refused", { object, problem: "no member has it yet", remedy });
  }
  const opened = await Promise.all(places.map((place) => openOrTell(place, open, gaps)));
  const sources = opened.filter((source) => source !== undefined);
  await showLogs(await podsOfJob(job, sources, context), options, context);
}

/** Shows the logs of a pod of the host: its own by the host, others by its member. */
async function logsOfHostPod(object: string, name: string, options: LogsInput, context: LogsContext): Promise<void> {
  const { host, open, signal, namespace } = context;
  const pod = await asViewer(host.client.find(pods, { namespace, name }, { signal }));
  if (pod === undefined) throw notOnHost(object);
  const found = await podWith(pod, options, open, context);
  if (found === undefined) return;
  if (options.follow) await followPods(named(pod), [found.source], { ...options, isSingle: true }, context);
  else await showLogs([found], options, context);
}

/** Shows the logs of pods in members, whoever made them. */
async function logsOfPods(object: string, options: LogsInput, context: LogsContext): Promise<void> {
  const { host, session, gaps, namespace } = context;
  const { kind, name: wanted } = options.target;
  const isNamed = kind === "pod";
  const selection = {
    namespace,
    ...(isNamed ? { fieldSelector: `metadata.name=${wanted}` } : { labelSelector: wanted }),
  };
  const clusters = await openClusters(host.client, options.clusters, { choice: options, session, namespace });
  const sources = clusters.map(({ name, client }) => ({ name, client, isHost: name === HOST }));
  const found = await selectedPods(selection, sources, context);
  if (found.length === 0 && gaps.lacking.length === 0) {
    const remedy = "check the namespace (-n); `legation get pods` shows those that there are";
    throw new Failure("failure", { object, problem: "not found in any of these clusters", remedy });
  }
  if (!options.follow) return showLogs(found, options, context);
  const answering = sources.filter(({ name }) => !gaps.lacking.includes(name));
  await followPods(selection, answering, { ...options, isSingle: isNamed && found.length === 1 }, context);
}

/** Reads `job/NAME`, `NAME`, `pod/NAME`, or the selector alone. Adds an issue for anything else. */
function targetOf(written: string | undefined, selector: string | undefined, context: z.RefinementCtx): Target {
  const [, type, name = ""] = /^(?:([^/]+)\/)?([^/]+)$/.exec(written ?? "") ?? [];
  const isName = type === undefined && POD_NAME.test(name);
  const word = type?.toLowerCase() ?? "";
  let problem = `${JSON.stringify(written)} is no Job or pod`;
  if (selector !== undefined && written === undefined) return { kind: "selector", name: selector };
  if (selector !== undefined) problem = "contradicts --selector";
  else if (written === undefined) problem = "is missing";
  else if (isName) return { kind: "hostPod", name };
  else if (JOBS.includes(word)) return { kind: "job", name };
  else if (PODS.includes(word)) return { kind: "pod", name };
  refusing(context)("target", `${problem}; write e.g. job/sweep, web-0, pod/web-0, or -l app=web`);
  return { kind: "job", name: "" };
}

function wholeNumber(least: number, example: string): z.ZodType<number, string> {
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: ({ input }) => `${JSON.stringify(input)} is not a number; write e.g. ${example}` })
    .transform(Number)
    .refine((value) => value >= least, { error: `must be ${least} or more; write e.g. ${example}` });
}
