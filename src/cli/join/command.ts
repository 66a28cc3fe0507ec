import { join as joinPath } from "node:path";
import { Argument } from "commander";
import { z } from "zod";
import { GROUP } from "../../api/keys.ts";
import { DEFAULT_HOST_NAME, recordedHostName } from "../../clusters/host-name.ts";
import { loadMemberRole } from "../member/access.ts";
import { flag, type Subcommand } from "../shared/command.ts";
import { duration, type GlobalInput, homeApiServer, memberName, withGlobals } from "../shared/input.ts";
import { printOutcome } from "../shared/output.ts";
import { packageRoot } from "../shared/package-root.ts";
import { hostContext } from "../shared/session.ts";
import { join } from "./join.ts";

const LABEL_VALUE = /^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$/;
const LABEL_NAME = /^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LONGEST_LABEL = 63;

/** Parses `region=eu,tier=gold` into labels. Names every problem. */
export const labelList: z.ZodType<Readonly<Record<string, string>>, string> = z.string().transform((text, context) => {
  const labels: Record<string, string> = {};
  for (const item of text.split(",").map((part) => part.trim())) {
    if (item === "") continue;
    const equals = item.indexOf("=");
    const key = item.slice(0, equals);
    const value = item.slice(equals + 1);
    const problem = equals < 1 ? "is not key=value; write e.g. region=eu" : labelProblem(key, value, labels);
    if (problem === undefined) labels[key] = value;
    else context.addIssue({ code: "custom", message: `${JSON.stringify(item)} ${problem}` });
  }
  return labels;
});

function labelProblem(key: string, value: string, others: Readonly<Record<string, string>>): string | undefined {
  const [name = "", prefix] = key.split("/").reverse();
  if (prefix === GROUP || prefix?.endsWith(`.${GROUP}`)) return `uses the prefix ${prefix}, which is Legation's own`;
  if (key.split("/").length > 2 || !LABEL_NAME.test(name) || name.length > LONGEST_LABEL) {
    return "has a key that is not a label's: letters, digits, '-', '_' and '.', with an optional dns.prefix/";
  }
  if (prefix !== undefined && (!DNS_SUBDOMAIN.test(prefix) || prefix.length > 253))
    return "has a prefix that is not a DNS name";
  if (!LABEL_VALUE.test(value) || value.length > LONGEST_LABEL) {
    return "has a value that is not a label's: at most 63 letters, digits, '-', '_' and '.'";
  }
  return Object.hasOwn(others, key) ? "is given twice" : undefined;
}

interface JoinInput extends GlobalInput {
  readonly name: string;
  readonly memberKubeconfig: string;
  readonly memberContext?: string | undefined;
  readonly memberServer?: string | undefined;
  readonly homeApiServer?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly timeout: number;
}

const serverUrl = z.string().refine((text) => URL.parse(text)?.protocol === "https:", {
  error: ({ input }) => `${JSON.stringify(input)} is not an https address; write e.g. https://10.0.0.1:6443`,
});

/** `legation join` */
export const joinCommand: Subcommand<JoinInput> = {
  description:
    "Makes a service account with only the rights that Legation needs in the member, stores its kubeconfig in a Secret " +
    "of the host, creates the Cluster object and waits until it is Ready. When a step fails or you press Ctrl-C, what " +
    "was made is taken back in both clusters. A member that joins again gets the rights that this version needs, and " +
    "credentials when those that the host has do not do; with --member-server, at that address.",
  arguments: [new Argument("<name>", "name of the member; its virtual node is legation-<name>")],
  flags: [
    flag("--member-kubeconfig <file>", "kubeconfig of the member, with cluster-admin rights (required)"),
    flag("--member-context <name>", "context of that kubeconfig (default: its current one)"),
    flag("--member-server <url>", "address at which the controller reaches the member (default: the kubeconfig's)"),
    flag(
      "--home-api-server <url>",
      "where pods in the member find the host's API server (default: as the controller was told for all members)",
    ),
    flag("--labels <list>", "labels for selectors, e.g. region=eu,tier=gold"),
    flag("--timeout <duration>", "how long to wait until a controller leads, and until it is Ready (default: 60s)"),
  ],
  examples: [
    ["join west --member-kubeconfig west.yaml", "a member named west"],
    ["join west --member-kubeconfig all.yaml --member-context west --labels region=eu,tier=gold", "with labels"],
    [
      "join west --member-kubeconfig west.yaml --member-server https://10.0.0.1:6443",
      "the controller reaches it at another address than you",
    ],
  ],
  input: withGlobals({
    name: memberName,
    memberKubeconfig: z.string({ error: "is missing; write --member-kubeconfig FILE" }),
    memberContext: z.string().optional(),
    memberServer: serverUrl.optional(),
    homeApiServer: homeApiServer.optional(),
    labels: labelList.default({}),
    timeout: duration.default(60_000),
  }),
  run: async (options, session) => {
    const { terminal, signal } = session;
    const { name, labels, memberServer, homeApiServer: homeServer, timeout: timeoutMs } = options;
    const host = await session.connect(options, "host");
    const member = await session.connect(
      { kubeconfig: options.memberKubeconfig, context: options.memberContext },
      name === "host" ? "member host" : name,
    );
    const hostName = (await recordedHostName(host.client, signal)) ?? DEFAULT_HOST_NAME;
    const cluster = await join(
      { name, labels, memberServer, homeApiServer: homeServer, timeoutMs, hostName },
      {
        ...hostContext(host, session),
        member,
        role: await loadMemberRole(joinPath(packageRoot(), "manifests", "member")),
      },
    );
    const { managedFields: _fields, ...metadata } = cluster.metadata;
    printOutcome(terminal, options.output, {
      text: `Cluster ${name} has joined and is Ready`,
      document: { ...cluster, metadata },
    });
  },
};
