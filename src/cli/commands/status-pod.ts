import { Argument } from "commander";
import { z } from "zod";
import { PROXY_LABEL } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { events, namespaces, pods } from "../../kube/resources.ts";
import { Failure } from "../failure.ts";
import { flag } from "../flag.ts";
import { toggle } from "../flags.ts";
import { type GlobalInput, withGlobals } from "../global-input.ts";
import { readable } from "../member/joined.ts";
import type { Outcome } from "../output.ts";
import type { Connection, Session } from "../session.ts";
import { readOwnWorkload } from "../status/own-workload.ts";
import { journeyOf, journeyText, type Own } from "../status/pod.ts";
import { readMemberNews } from "../status/pod-member.ts";
import { showFollowing } from "../status/screen.ts";
import type { Subcommand } from "../subcommand.ts";
import { asViewer } from "../viewer.ts";

interface StatusPodInput extends GlobalInput {
  readonly watch: boolean;
  readonly name: string;
  readonly namespace?: string | undefined;
}

const POLL_MS = 1000;

/** `legation status pod` */
export const statusPodCommand: Subcommand<StatusPodInput> = {
  description:
    "Shows what happened to one pod and when, from the host's own objects: creation, placement with a reason for each " +
    "member that refused it, its delegate's uid and node, its containers, its end, what is wrong with its member, and its events.",
  arguments: [new Argument("<name>", "name of the pod on the host")],
  flags: [flag("-n, --namespace <name>", "its namespace (default: the context's)")],
  examples: [
    ["status pod web-0 -n shop", "one pod"],
    ["status pod web-0 -n shop -w", "follow it"],
  ],
  input: withGlobals({ watch: toggle, name: z.string(), namespace: z.string().optional() }),
  run: async (options, session) => {
    const connection = await session.connect(options, "host");
    await showFollowing(options, session, POLL_MS, () => asViewer(readPod(options, connection, session)));
  },
};

async function readPod(options: StatusPodInput, connection: Connection, session: Session): Promise<Outcome> {
  const { client } = connection;
  const { signal, terminal } = session;
  const { name, namespace = connection.namespace } = options;
  const pod = await client.find(pods, { namespace, name }, { signal });
  if (pod === undefined) {
    throw new Failure("failure", {
      object: `pod ${namespace}/${name}`,
      problem: "is not on the host",
      remedy: "check its name and namespace (-n)",
    });
  }
  const fieldSelector = `involvedObject.uid=${pod.metadata.uid}`;
  const told = await listAll(client, events, { namespace, fieldSelector, signal });
  const isMarked = pod.metadata.labels?.[PROXY_LABEL] !== undefined;
  const own = isMarked ? undefined : await readOwn(client, pod, signal);
  const journey = journeyOf(pod, told, own, await readMemberNews(client, pod, signal));
  return { document: journey, text: journeyText(journey, terminal) };
}

/** The pod's namespace and workload, as far as the account may read them. */
async function readOwn(client: ClusterClient, pod: Stored<Pod>, signal: AbortSignal): Promise<Own> {
  const { namespace: name = "" } = pod.metadata;
  const [namespace, workload] = await Promise.all([
    readable(client.find(namespaces, { name }, { signal })),
    readOwnWorkload(client, pod, signal),
  ]);
  return { namespace, workload };
}
