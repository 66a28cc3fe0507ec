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
import { type FollowContext, type FollowLogsOptions, followLogs, followPods } from "./follow.ts";
import { LinePrinter } from "./lines.ts";
import { podsOfJob, podWith, selectedPods, showLogs } from "./show.ts";
import { type LogSource, openOrTell, openSource, type PodSelection, placesOf } from "./sources.ts";

type Target =
  | { readonly job: string }
  | { readonly hostPod: string }
  | { readonly pod: string }
  | { readonly labelSelector: string };

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
}).transform(({ target: written, selector, ...rest }, context) => {
  const target = targetOf(written, selector, context);
  const refuse = refusing(context);
  if ("job" in target && rest.clusters !== undefined) {
    refuse("clusters", "is for pods; the members of a Job are on record on the host");
  }
  if ("hostPod" in target && rest.clusters !== undefined) {
    refuse("clusters", "is for pod/NAME and -l; the member of a pod of the host is on record there");
  }
  if (rest.container !== undefined && rest.allContainers) refuse("container", "contradicts --all-containers; give one");
  return { ...rest, target };
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
    const output = { gaps, printer: new LinePrinter((bytes) => terminal.write(bytes)), signal };
    const { target, namespace = host.namespace } = options;
    const access = { host, choice: options, memberKubeconfig: options.memberKubeconfig, session };
    const open = (place: string): Promise<LogSource> => openSource(place, access);
    const source = { name: "host", client: host.client, isHost: true };
    const context = { ...output, host: source, open, clock: realClock, session };
    const object =
      "job" in target
        ? await logsOfJob({ namespace, name: target.job }, options, context)
        : "hostPod" in target
          ? await logsOfHostPod({ namespace, name: target.hostPod }, options, context)
          : await logsOfPods(target, namespace, options, context);
    if (gaps.lacking.length === 0) return;
    // A gap of a pod is `member/pod`, and one of a whole member its name.
    const misses = "job" in target && gaps.lacking.some((name) => !name.includes("/"));
    throw new Failure("failure", {
      object,
      problem: `logs are missing, as told above: ${some(gaps.lacking)}`,
      remedy: misses && options.memberKubeconfig === undefined ? ANOTHER_WAY : undefined,
    });
  },
});

const ANOTHER_WAY =
  "where this machine does not reach a member as the host does, give --member-kubeconfig FILE (docs/whole-jobs.md#reading-logs)";

interface LogsContext extends FollowContext {
  readonly session: Session;
}

async function logsOfJob(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  options: LogsInput,
  context: LogsContext,
): Promise<string> {
  const { host, open, gaps, signal } = context;
  const object = `Job ${namespace}/${name}`;
  const job = await asViewer(host.client.find(jobs, { namespace, name }, { signal }));
  if (job === undefined) throw notOnHost(object);
  const wanted = logOptions(options);
  if (options.follow) await followLogs(job, wanted, context);
  else await showLogs(await podsOfJob(job, await openAll(job, open, gaps), context), wanted, context);
  return object;
}

/** Shows the logs of a pod of the host: its own by the host, others by its member. Resolves to the pod's name for messages. */
async function logsOfHostPod(
  ref: { readonly namespace: string; readonly name: string },
  options: LogsInput,
  context: LogsContext,
): Promise<string> {
  const object = `Pod ${ref.namespace}/${ref.name}`;
  const pod = await asViewer(context.host.client.find(pods, ref, { signal: context.signal }));
  if (pod === undefined) throw notOnHost(object);
  const wanted = logOptions(options);
  const found = await podWith(pod, wanted, context.open, context);
  if (found === undefined) return object;
  const selection = { namespace: ref.namespace, fieldSelector: `metadata.name=${ref.name}` };
  if (options.follow) await followPods(selection, [found.source], { ...wanted, isSingle: true }, context);
  else await showLogs([found], wanted, context);
  return object;
}

/** Shows the logs of pods in members. Resolves to what messages call them. */
async function logsOfPods(
  target: Extract<Target, { readonly pod: string } | { readonly labelSelector: string }>,
  namespace: string,
  options: LogsInput,
  context: LogsContext,
): Promise<string> {
  const { session, gaps } = context;
  const clusters = await openClusters(context.host.client, options.clusters, { choice: options, session, namespace });
  const sources = clusters.map(({ name, client }) => ({ name, client, isHost: name === HOST }));
  const isNamed = "pod" in target;
  const object = isNamed ? `Pod ${namespace}/${target.pod}` : `pods ${target.labelSelector} in ${namespace}`;
  const selection: PodSelection = {
    namespace,
    ...(isNamed ? { fieldSelector: `metadata.name=${target.pod}` } : { labelSelector: target.labelSelector }),
  };
  const found = await selectedPods(selection, sources, context);
  if (found.length === 0 && gaps.lacking.length === 0) {
    const remedy = "check the namespace (-n); `legation get pods` shows those that there are";
    throw new Failure("failure", { object, problem: "not found in any of these clusters", remedy });
  }
  if (!options.follow) await showLogs(found, logOptions(options), context);
  else {
    const answering = sources.filter(({ name }) => !gaps.lacking.includes(name));
    await followPods(
      selection,
      answering,
      { ...logOptions(options), isSingle: isNamed && found.length === 1 },
      context,
    );
  }
  return object;
}

function logOptions(options: LogsInput): FollowLogsOptions {
  const { allContainers: all, since: sinceMs, maxLogRequests: maxStreams } = options;
  return { ...options, all, sinceMs, maxStreams };
}

/** Reads `job/NAME`, `pod/NAME`, or the selector alone. Adds an issue for anything else. */
function targetOf(written: string | undefined, labelSelector: string | undefined, context: z.RefinementCtx): Target {
  const refuse = (message: string): Target => {
    refusing(context)("target", message);
    return { job: "" };
  };
  const choices = "write e.g. job/sweep, web-0, pod/web-0, or -l app=web";
  if (labelSelector !== undefined) {
    return written === undefined ? { labelSelector } : refuse(`contradicts --selector; ${choices}`);
  }
  if (written === undefined) return refuse(`is missing; ${choices}`);
  if (POD_NAME.test(written)) return { hostPod: written };
  const [, type = "", name = ""] = /^([^/]+)\/([^/]+)$/.exec(written) ?? [];
  if (JOBS.includes(type.toLowerCase())) return { job: name };
  if (PODS.includes(type.toLowerCase())) return { pod: name };
  return refuse(`${JSON.stringify(written)} is no Job or pod; ${choices}`);
}

async function openAll(
  job: Parameters<typeof placesOf>[0],
  open: (place: string) => Promise<LogSource>,
  gaps: Gaps,
): Promise<LogSource[]> {
  const places = placesOf(job);
  if (places.length === 0) {
    const { namespace, name } = job.metadata ?? {};
    throw new Failure("refused", {
      object: `Job ${namespace}/${name}`,
      problem: "no member has it yet",
      remedy: `\`legation status job/${name}\` says why; -f waits for it`,
    });
  }
  const opened = await Promise.all(places.map((place) => openOrTell(place, open, gaps)));
  return opened.filter((source) => source !== undefined);
}

function wholeNumber(least: number, example: string): z.ZodType<number, string> {
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: ({ input }) => `${JSON.stringify(input)} is not a number; write e.g. ${example}` })
    .transform(Number)
    .refine((value) => value >= least, { error: `must be ${least} or more; write e.g. ${example}` });
}
