import { flag } from "../flag.ts";
import { toggle } from "../flags.ts";
import { type GlobalInput, withGlobals } from "../global-input.ts";
import type { Outcome } from "../output.ts";
import { hostStatus, type Snapshot, statusTable } from "../status/clusters.ts";
import { Screen } from "../status/screen.ts";
import { followSnapshot, readSnapshot } from "../status/snapshot.ts";
import type { Subcommand } from "../subcommand.ts";

interface StatusInput extends GlobalInput {
  readonly watch: boolean;
}

/** `legation status` */
export const statusCommand: Subcommand<StatusInput> = {
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
