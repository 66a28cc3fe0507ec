import { join as joinPath } from "node:path";
import { Argument } from "commander";
import { z } from "zod";
import { DEFAULT_HOST_NAME, recordedHostName } from "../../clusters/host-name.ts";
import { flag } from "../flag.ts";
import { duration, homeApiServer } from "../flags.ts";
import { type GlobalInput, withGlobals } from "../global-input.ts";
import { labelList, memberName } from "../join/input.ts";
import { join } from "../join/join.ts";
import { loadMemberRole } from "../member/role.ts";
import { printOutcome } from "../output.ts";
import { packageRoot } from "../package-root.ts";
import type { Subcommand } from "../subcommand.ts";

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
        host: host.client,
        member,
        connectText: session.connectText,
        role: await loadMemberRole(joinPath(packageRoot(), "manifests", "member")),
        signal,
        report: (line) => terminal.progress(line),
      },
    );
    const { managedFields: _fields, ...metadata } = cluster.metadata;
    printOutcome(terminal, options.output, {
      text: `Cluster ${name} has joined and is Ready`,
      document: { ...cluster, metadata },
    });
  },
};
