import { Argument } from "commander";
import { z } from "zod";
import { jobs } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { flag, type Subcommand } from "../shared/command.ts";
import { Failure } from "../shared/failure.ts";
import { Gaps } from "../shared/gaps.ts";
import { duration, type GlobalInput, toggle, withGlobals } from "../shared/input.ts";
import { some } from "../shared/output.ts";
import { asViewer, notOnHost } from "../shared/reading.ts";
import { followLogs } from "./follow.ts";
import { LinePrinter } from "./lines.ts";
import { showLogs } from "./show.ts";
import { type LogSource, openSource, placesOf } from "./sources.ts";

interface LogsInput extends GlobalInput {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly follow: boolean;
  readonly container?: string | undefined;
  readonly allContainers: boolean;
  readonly tail?: number | undefined;
  readonly since?: number | undefined;
  readonly timestamps: boolean;
  readonly maxLogRequests: number;
  readonly memberKubeconfig?: string | undefined;
}

const TYPES = ["job", "jobs", "job.batch", "jobs.batch"];
const MAX_STREAMS = 100;

/** `legation logs` */
export const logsCommand: Subcommand<LogsInput> = {
  description:
    "Shows the logs of all pods of a Job, in all members that have it; of more than one pod each line begins with " +
    "[member/pod]. With -f it goes on until the Job is over. The pods of a whole Job are its member's alone, so its " +
    "logs are read there: with a kubeconfig of your own, or else with the credentials that the host has of the member. " +
    "What cannot be read is named on standard error, and the rest is shown.",
  arguments: [new Argument("<job>", "job/NAME")],
  flags: [
    flag("-n, --namespace <name>", "namespace of the Job (default: the context's)"),
    flag("-f, --follow", "go on with what is written, and with pods that start later, until the Job is over"),
    flag("-c, --container <name>", "container of each pod (default: as kubectl chooses it)"),
    flag("--all-containers", "all containers of each pod; lines begin with [member/pod/container]"),
    flag("--tail <lines>", "only the last lines of each container (default: all)"),
    flag("--since <duration>", "only what was written within this time, e.g. 10m"),
    flag("--timestamps", "begin each line with its time"),
    flag("--max-log-requests <number>", `containers that -f follows at a time (default: ${MAX_STREAMS})`),
    flag(
      "--member-kubeconfig <file>",
      "kubeconfig of your own for members: its context with the member's name, else its current one " +
        "(default: the credentials that the host has)",
    ),
  ],
  examples: [
    ["logs job/sweep -n shop", "all pods of a Job"],
    ["logs job/sweep -n shop -f --tail 10", "follow it from here on, until it is over"],
    ["logs job/sweep -n shop --member-kubeconfig members.yaml", "with your own rights in the members"],
  ],
  input: withGlobals({
    job: z.string(),
    namespace: z.string().optional(),
    follow: toggle,
    container: z.string().optional(),
    allContainers: toggle,
    tail: wholeNumber(0, "10").optional(),
    since: duration.optional(),
    timestamps: toggle,
    maxLogRequests: wholeNumber(1, "500").default(MAX_STREAMS),
    memberKubeconfig: z.string().optional(),
  }).transform(({ job, ...rest }, context) => {
    const [, type = "", name = ""] = /^([^/]+)\/([^/]+)$/.exec(job) ?? [];
    const refuse = (path: string, message: string): void =>
      void context.addIssue({ code: "custom", path: [path], message });
    if (!TYPES.includes(type.toLowerCase())) {
      refuse("job", `${JSON.stringify(job)} is no Job; write e.g. job/sweep. Logs of a pod: \`kubectl logs POD\``);
    }
    if (rest.container !== undefined && rest.allContainers)
      refuse("container", "contradicts --all-containers; give one");
    return { ...rest, name };
  }),
  run: async (options, session) => {
    const host = await session.connect(options, "host");
    const { signal, terminal } = session;
    const {
      name,
      namespace = host.namespace,
      since: sinceMs,
      allContainers: all,
      maxLogRequests: maxStreams,
    } = options;
    const job = await asViewer(host.client.find(jobs, { namespace, name }, { signal }));
    if (job === undefined) throw notOnHost(`Job ${namespace}/${name}`);
    const gaps = new Gaps((line) => terminal.progress(line));
    const output = { gaps, printer: new LinePrinter((bytes) => terminal.write(bytes)), signal };
    const access = { host, memberKubeconfig: options.memberKubeconfig, session };
    const open = (place: string): Promise<LogSource> => openSource(place, access);
    const wanted = { ...options, all, sinceMs, maxStreams };
    const source = { name: "host", client: host.client, isHost: true };
    if (options.follow) await followLogs(job, wanted, { ...output, host: source, open, clock: realClock });
    else await showLogs(job, await openAll(job, open, gaps), wanted, output);
    if (gaps.lacking.length === 0) return;
    throw new Failure("failure", {
      object: `Job ${namespace}/${name}`,
      problem: `logs are missing, as told above: ${some(gaps.lacking)}`,
    });
  },
};

/** Opens the clusters that have the Job. Rejects with `Failure` if there is none yet. */
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
  const opened = await Promise.all(
    places.map(async (place) => {
      try {
        return await open(place);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        gaps.addFailure(place, error);
        return undefined;
      }
    }),
  );
  return opened.filter((source) => source !== undefined);
}

function wholeNumber(least: number, example: string): z.ZodType<number, string> {
  return z
    .string()
    .regex(/^\d{1,9}$/, { error: ({ input }) => `${JSON.stringify(input)} is not a number; write e.g. ${example}` })
    .transform(Number)
    .refine((value) => value >= least, { error: `must be ${least} or more; write e.g. ${example}` });
}
