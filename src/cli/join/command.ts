import { Argument } from "commander";
import { stringify } from "yaml";
import { z } from "zod";
import { accessPrefixProblem } from "../../api/access.ts";
import { networkOrNone } from "../../api/cluster.ts";
import { GROUP } from "../../api/keys.ts";
import { DEFAULT_HOST_NAME, recordedHost } from "../../clusters/host-name.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { duration, flagRules, homeApiServer, hubAddress, memberName, toggle, withGlobals } from "../shared/input.ts";
import { typeList } from "../shared/named-types.ts";
import { printOutcome } from "../shared/output.ts";
import { hostContext } from "../shared/session.ts";
import { loadMemberRole } from "./grant-access.ts";
import { joinByKubeconfig, joinByManifest } from "./join.ts";

/** Parses `region=eu,tier=gold` into labels. Names every problem; the API server knows which characters a label may have. */
export const labelList: z.ZodType<Readonly<Record<string, string>>, string> = z.string().transform((text, context) => {
  const labels: Record<string, string> = {};
  for (const item of text.split(",").map((part) => part.trim())) {
    if (item === "") continue;
    const equals = item.indexOf("=");
    const key = item.slice(0, equals);
    const problem = equals < 1 ? "is not key=value; write e.g. region=eu" : keyProblem(key, labels);
    if (problem === undefined) labels[key] = item.slice(equals + 1);
    else context.addIssue(`${JSON.stringify(item)} ${problem}`);
  }
  return labels;
});

function keyProblem(key: string, others: Readonly<Record<string, string>>): string | undefined {
  const [prefix = ""] = key.split("/");
  if (prefix === GROUP || prefix.endsWith(`.${GROUP}`)) return `uses the prefix ${prefix}, which is Legation's own`;
  return Object.hasOwn(others, key) ? "is given twice" : undefined;
}

const serverUrl = z.string().refine((text) => URL.parse(text)?.protocol === "https:", {
  error: ({ input }) => `${JSON.stringify(input)} is not an https address; write e.g. https://10.0.0.1:6443`,
});

const accessPrefix = z.string().superRefine((text, context) => {
  const problem = accessPrefixProblem(text);
  if (problem !== undefined) context.addIssue(`${JSON.stringify(text)} ${problem}`);
});

export const command: Equip = equipped({
  description:
    "Makes a service account with only the rights that Legation needs in the member, tries its credentials, stores them " +
    "in a Secret of the host, writes the Cluster object and waits until it is Ready. Run it again to complete a join that " +
    "failed, after an upgrade, for new credentials, or with other labels or addresses: settings that you leave out stay, but " +
    "for --agent, without which the controller reaches the member directly.",
  arguments: [new Argument("<name>", "name of the member; its virtual node is legation-<name>")],
  flags: flags({
    "--member-kubeconfig <file>": "kubeconfig of the member, with cluster-admin rights (required, but with --agent)",
    "--member-context <name>": "context of that kubeconfig (default: its current one)",
    "--member-server <url>":
      "address at which the controller reaches the member (default: as joined, else the kubeconfig's)",
    "--home-api-server <url>":
      "where pods in the member find the host's API server (default: as joined, else as the controller was told for all members)",
    "--network <name>":
      "network in which its pods reach those of other clusters by their addresses: Services lead there, too (docs/services.md; " +
      "'' for none; default: as joined, else none)",
    "--labels <list>": "labels for selectors, e.g. region=eu,tier=gold",
    "--types <list>":
      "types of which the host may have whole objects in the member, e.g. certificates.cert-manager.io; those of earlier joins stay",
    "--definitions": "the host may also create and change the CustomResourceDefinitions of these types there",
    "--agent":
      "the host cannot reach the member: an agent there connects to the host. Without --member-kubeconfig its manifest is " +
      "printed, to be applied there within an hour",
    "--hub-address <address>":
      "HOST:PORT at which agents reach the host's controller, by the Service legation-hub (default: as the first join with an agent said)",
    "--agent-image <image>": "image that the agent runs (default: the controller's)",
    "--home-api-through-agent":
      "pods in the member have no route to the host's API server: the agent leads them there (default: as joined)",
    "--access":
      "users of the host reach the member's API server through the host's, as themselves and with the rights that the member " +
      "gives them (docs/access.md); stays until --remove-access",
    "--access-prefix <text>":
      "with --access: precedes the names of users and groups in the member, e.g. legation: or '' for none " +
      "(default: as joined, else legation:)",
    "--remove-access": "users reach the member no more; its account for that is deleted",
    "--timeout <duration>": "how long to wait until it is Ready (default: 60s)",
  }),
  examples: {
    "join west --member-kubeconfig west.yaml": "a member named west",
    "join west --member-kubeconfig all.yaml --member-context west --labels region=eu,tier=gold": "with labels",
    "join west --member-kubeconfig west.yaml --member-server https://10.0.0.1:6443":
      "the controller reaches it at another address than you",
    "join west --member-kubeconfig west.yaml --types certificates.cert-manager.io":
      "again, so that west takes Certificates of this host",
    "join west --member-kubeconfig west.yaml --access": "users of the host may look into it as themselves",
    "join west --agent --hub-address hub.example.org:8132 | kubectl --kubeconfig west.yaml apply -f -":
      "a member that the host cannot reach",
  },
  input: withGlobals({
    name: memberName,
    memberKubeconfig: z.string().optional(),
    memberContext: z.string().optional(),
    memberServer: serverUrl.optional(),
    homeApiServer: homeApiServer.optional(),
    network: networkOrNone.optional(),
    labels: labelList.default({}),
    types: typeList.default([]),
    definitions: toggle,
    agent: toggle,
    hubAddress: hubAddress.optional(),
    agentImage: z.string().min(1).optional(),
    homeApiThroughAgent: toggle,
    access: toggle,
    accessPrefix: accessPrefix.optional(),
    removeAccess: toggle,
    timeout: duration.default(60_000),
  })
    .refine(({ agent, memberKubeconfig }) => agent || memberKubeconfig !== undefined, {
      path: ["memberKubeconfig"],
      error: "is missing; write --member-kubeconfig FILE, or --agent for a member that is not at hand",
    })
    .superRefine(
      flagRules({
        needs: {
          hubAddress: "agent",
          agentImage: "agent",
          homeApiThroughAgent: "agent",
          accessPrefix: "access",
          types: "memberKubeconfig",
          definitions: "types",
        },
        excludes: { memberServer: "agent", homeApiThroughAgent: "homeApiServer", removeAccess: "access" },
      }),
    ),
  working: "joining",
  run: async (options, session) => {
    const { terminal, signal } = session;
    const { name } = options;
    const host = await session.connect(options, "host");
    const { name: hostName = DEFAULT_HOST_NAME, mcs } = await recordedHost(host.client, signal);
    const context = { ...hostContext(host, session), hostName, role: await loadMemberRole(mcs) };
    if (options.memberKubeconfig === undefined) {
      const objects = await joinByManifest(options, context);
      terminal.write(objects.map((object) => stringify(object)).join("---\n"));
      terminal.progress(
        `Cluster ${name} waits for its agent: apply this manifest in the member within an hour; \`legation status\` says when it is Ready`,
      );
      return;
    }
    const member = await session.connect(
      { kubeconfig: options.memberKubeconfig, context: options.memberContext },
      name === "host" ? "member host" : name,
    );
    const cluster = await joinByKubeconfig(options, { ...context, member });
    const { managedFields: _fields, ...metadata } = cluster.metadata;
    printOutcome(terminal, options.output, {
      text: `Cluster ${name} has joined and is Ready`,
      document: { ...cluster, metadata },
    });
  },
});
