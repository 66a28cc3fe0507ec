import { Argument } from "commander";
import { z } from "zod";
import { events, pods } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Failure } from "../failure.ts";
import { flag, toggle } from "../flags.ts";
import { type GlobalInput, withGlobals } from "../global-input.ts";
import type { Outcome } from "../output.ts";
import type { Connection, Session } from "../session.ts";
import { hostStatus, type Snapshot, statusTable } from "../status/clusters.ts";
import { journeyOf, journeyText } from "../status/pod.ts";
import { Screen } from "../status/screen.ts";
import { followSnapshot, readSnapshot } from "../status/snapshot.ts";
import type { Subcommand } from "../subcommand.ts";

interface StatusInput extends GlobalInput {
  readonly watch: boolean;
}

/** `legation status` */
export const statusCommand: Subcommand<StatusInput> = {
  name: "status",
  summary: "show the member clusters, one pod's way, or a workload's division",
  description:
    "Shows each member: whether it is ready and why not, its version and nodes, what its nodes offer and what this " +
    "host's pods leave of it, and how many of them run there.",
  flags: [flag("-w, --watch", "go on and show every change")],
  examples: [
    ["status", "all members"],
    ["status -w", "follow them"],
    ["status -o json | jq '.clusters[] | select(.ready != \"True\")'", "those in trouble, for a script"],
    ["status pod web-0 -n shop", "where one pod is, and why"],
    ["status deployment web -n shop", "how a workload is divided, and why pods of it wait"],
  ],
  input: withGlobals({ watch: toggle }),
  run: async (options, session) => {
    const { client } = await session.connect(options, "host");
    const screen = new Screen(session.terminal, options.output);
    const outcome = (snapshot: Snapshot): Outcome => {
      const status = hostStatus(snapshot);
      return { document: status, text: statusTable(status, Date.now(), session.terminal) };
    };
    if (!options.watch) screen.show(outcome(await readSnapshot(client, session.signal)));
    else await followSnapshot(client, (snapshot) => screen.show(outcome(snapshot)), session.signal);
  },
};

interface StatusPodInput extends StatusInput {
  readonly name: string;
  readonly namespace?: string | undefined;
}

const POLL_MS = 1000;

/** `legation status pod` */
export const statusPodCommand: Subcommand<StatusPodInput> = {
  name: "pod",
  summary: "show one pod's way: created, placed, bound, running, finished, or what it waits for",
  description:
    "Shows what happened to one pod and when, from the host's own objects: creation, placement with a reason for each " +
    "member that refused it, its delegate's uid and node, its containers, its end, and its events.",
  arguments: [new Argument("<name>", "name of the pod on the host")],
  flags: [flag("-n, --namespace <name>", "its namespace (default: the context's)")],
  examples: [
    ["status pod web-0 -n shop", "one pod"],
    ["status pod web-0 -n shop -w", "follow it"],
  ],
  input: withGlobals({ watch: toggle, name: z.string(), namespace: z.string().optional() }),
  run: async (options, session) => {
    const connection = await session.connect(options, "host");
    const screen = new Screen(session.terminal, options.output);
    do {
      screen.show(await readPod(options, connection, session));
      if (options.watch) await realClock.sleep(POLL_MS, session.signal);
    } while (options.watch);
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
  const { items } = await client.list(events, { namespace, fieldSelector, signal });
  const journey = journeyOf(pod, items);
  return { document: journey, text: journeyText(journey, terminal) };
}
