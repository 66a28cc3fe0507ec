import { join as joinPath } from "node:path";
import { Argument } from "commander";
import { z } from "zod";
import { GROUP } from "../../api/keys.ts";
import { DEFAULT_HOST_NAME, recordedHostName } from "../../clusters/host-name.ts";
import { flag, type Subcommand } from "../shared/command.ts";
import { duration, type GlobalInput, homeApiServer, memberName, withGlobals } from "../shared/input.ts";
import { type TypeName, typeList } from "../shared/named-types.ts";
import { printOutcome } from "../shared/output.ts";
import { packageRoot } from "../shared/package-root.ts";
import { hostContext } from "../shared/session.ts";
import { loadMemberRole } from "./grant-access.ts";
import { join } from "./join.ts";

/** Parses `region=eu,tier=gold` into labels. Names every problem; the API server knows which characters a label may have. */
export const labelList: z.ZodType<Readonly<Record<string, string>>, string> = z.string().transform((text, context) => {
  const labels: Record<string, string> = {};
  for (const item of text.split(",").map((part) => part.trim())) {
    if (item === "") continue;
    const equals = item.indexOf("=");
    const key = item.slice(0, equals);
    const problem = equals < 1 ? "is not key=value; write e.g. region=eu" : keyProblem(key, labels);
    if (problem === undefined) labels[key] = item.slice(equals + 1);
    else context.addIssue({ code: "custom", message: `${JSON.stringify(item)} ${problem}` });
  }
  return labels;
});

function keyProblem(key: string, others: Readonly<Record<string, string>>): string | undefined {
  const [prefix = ""] = key.split("/");
  if (prefix === GROUP || prefix.endsWith(`.${GROUP}`)) return `uses the prefix ${prefix}, which is Legation's own`;
  return Object.hasOwn(others, key) ? "is given twice" : undefined;
}

interface JoinInput extends GlobalInput {
  readonly name: string;
  readonly memberKubeconfig: string;
  readonly memberContext?: string | undefined;
  readonly memberServer?: string | undefined;
  readonly homeApiServer?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly types: readonly TypeName[];
  readonly timeout: number;
}

const serverUrl = z.string().refine((text) => URL.parse(text)?.protocol === "https:", {
  error: ({ input }) => `${JSON.stringify(input)} is not an https address; write e.g. https://10.0.0.1:6443`,
});

/** `legation join` */
export const joinCommand: Subcommand<JoinInput> = {
  description:
    "Makes a service account with only the rights that Legation needs in the member, tries its credentials, stores them " +
    "in a Secret of the host, writes the Cluster object and waits until it is Ready. Run it again to complete a join that " +
    "failed, after an upgrade, for new credentials, or with other labels or addresses: settings that you leave out stay.",
  arguments: [new Argument("<name>", "name of the member; its virtual node is legation-<name>")],
  flags: [
    flag("--member-kubeconfig <file>", "kubeconfig of the member, with cluster-admin rights (required)"),
    flag("--member-context <name>", "context of that kubeconfig (default: its current one)"),
    flag(
      "--member-server <url>",
      "address at which the controller reaches the member (default: as joined, else the kubeconfig's)",
    ),
    flag(
      "--home-api-server <url>",
      "where pods in the member find the host's API server (default: as joined, else as the controller was told for all members)",
    ),
    flag("--labels <list>", "labels for selectors, e.g. region=eu,tier=gold"),
    flag(
      "--types <list>",
      "types of which the host may have whole objects in the member, e.g. certificates.cert-manager.io; those of earlier joins stay",
    ),
    flag("--timeout <duration>", "how long to wait until it is Ready (default: 60s)"),
  ],
  examples: [
    ["join west --member-kubeconfig west.yaml", "a member named west"],
    ["join west --member-kubeconfig all.yaml --member-context west --labels region=eu,tier=gold", "with labels"],
    [
      "join west --member-kubeconfig west.yaml --member-server https://10.0.0.1:6443",
      "the controller reaches it at another address than you",
    ],
    [
      "join west --member-kubeconfig west.yaml --types certificates.cert-manager.io",
      "again, so that west takes Certificates of this host",
    ],
  ],
  input: withGlobals({
    name: memberName,
    memberKubeconfig: z.string({ error: "is missing; write --member-kubeconfig FILE" }),
    memberContext: z.string().optional(),
    memberServer: serverUrl.optional(),
    homeApiServer: homeApiServer.optional(),
    labels: labelList.default({}),
    types: typeList.default([]),
    timeout: duration.default(60_000),
  }),
  run: async (options, session) => {
    const { terminal, signal } = session;
    const { name, labels, types, memberServer, homeApiServer: homeServer, timeout: timeoutMs } = options;
    const host = await session.connect(options, "host");
    const member = await session.connect(
      { kubeconfig: options.memberKubeconfig, context: options.memberContext },
      name === "host" ? "member host" : name,
    );
    const hostName = (await recordedHostName(host.client, signal)) ?? DEFAULT_HOST_NAME;
    const cluster = await join(
      { name, labels, types, memberServer, homeApiServer: homeServer, timeoutMs, hostName },
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
