import { Argument } from "commander";
import { stringify } from "yaml";
import { z } from "zod";
import { clusterProxyPath } from "../../api/access.ts";
import { joinCommandOf } from "../../api/join-command.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { readWrittenContext, type WrittenContext } from "../../kube/kubeconfig-context.ts";
import { type Equip, equipped, flags, type Subcommand } from "../shared/command.ts";
import { Failure } from "../shared/failure.ts";
import { type GlobalInput, memberName, withGlobals } from "../shared/input.ts";
import { listClusters, notJoined, readable } from "../shared/reading.ts";

interface KubeconfigInput extends GlobalInput {
  readonly name: string;
  readonly as?: string | undefined;
}

export const kubeconfigCommand: Subcommand<KubeconfigInput> = {
  description:
    "Prints a kubeconfig for a member, which kubectl and other clients reach through the host's API server with your own " +
    "credentials of the host, exec plugins included. You need the host's right on clusters/proxy of access.legation.dev, and in " +
    "the member those rights that you or your groups have there, under the Cluster's prefix. What it prints is as secret as your " +
    "kubeconfig of the host.",
  arguments: [new Argument("<name>", "name of the member")],
  flags: flags({
    "--as-context <name>": "name of the context and its cluster (default: the member's name)",
  }),
  examples: {
    "kubeconfig west > west.yaml": "for kubectl --kubeconfig west.yaml",
    "kubeconfig west --as-context work-west > west.yaml": "to be listed in KUBECONFIG beside others",
  },
  input: withGlobals({ name: memberName, asContext: z.string().min(1).optional() }).transform(
    ({ asContext: as, ...rest }) => ({ ...rest, as }),
  ),
  run: async ({ name, as = name, kubeconfig, context, output }, session) => {
    const host = await session.connect({ kubeconfig, context }, "host");
    await requireAccess(host.client, name, session.signal);
    const written = readWrittenContext({ kubeconfig, context, env: session.env });
    const document = memberContext(written, { member: name, as });
    session.terminal.write(output === "json" ? `${JSON.stringify(document, null, 2)}\n` : stringify(document));
  },
};

export const command: Equip = equipped(kubeconfigCommand);

/** Rejects with `Failure` for a member that users do not reach. Users who may not read Clusters learn it from their first request. */
async function requireAccess(host: ClusterClient, name: string, signal: AbortSignal): Promise<void> {
  const found = await readable(host.find(clusters, { name }, { signal }).then((cluster) => ({ cluster })));
  if (found === undefined || found.cluster?.spec.access !== undefined) return;
  if (found.cluster === undefined) throw notJoined(name, await listClusters(host, signal));
  throw new Failure("refused", {
    object: `Cluster ${name}`,
    field: "spec.access",
    problem: "is missing: users do not reach this member through the host",
    remedy: `have an administrator run \`${joinCommandOf(found.cluster)} --access\``,
  });
}

export function memberContext(
  { cluster, user, userName, namespace }: WrittenContext,
  { member, as }: { readonly member: string; readonly as: string },
): object {
  const server = cluster.server.replace(/\/+$/, "") + clusterProxyPath(member);
  const of = namespace === undefined ? {} : { namespace };
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: as, cluster: { ...cluster, server } }],
    users: [{ name: userName, user }],
    contexts: [{ name: as, context: { cluster: as, user: userName, ...of } }],
    "current-context": as,
  };
}
