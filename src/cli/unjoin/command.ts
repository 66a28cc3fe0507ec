import { Argument } from "commander";
import { z } from "zod";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { duration, memberName, toggle, withGlobals } from "../shared/input.ts";
import { printOutcome } from "../shared/output.ts";
import { hostContext } from "../shared/session.ts";
import { unjoin } from "./unjoin.ts";

const CONTROLLER_USER = `system:serviceaccount:${SYSTEM_NAMESPACE}:legation-controller`;

// Neither the lost member nor the controller is waited for any longer.
const LONGEST_FORCED_MS = 10_000;

export const command: Equip = equipped({
  description:
    "Removes the Cluster, its virtual node and the credentials that `legation join` made from the host, and what the host made from the member: " +
    "its objects, its access, and the namespaces that it made and that hold nothing else. It refuses while pods or whole Jobs run there, " +
    "unless --drain moves the pods and waits for the Jobs. It may be repeated until nothing remains.",
  arguments: [new Argument("<name>", "name of the member")],
  flags: flags({
    "--member-kubeconfig <file>": "kubeconfig of the member with cluster-admin rights (default: the stored one)",
    "--member-context <name>": "context of that kubeconfig (default: its current one)",
    "--drain": "evict the pods that run there, honouring PodDisruptionBudgets, and wait until whole Jobs have finished",
    "--force":
      "the member is gone for good: delete its pods on the host without waiting for it; its whole Jobs end as Failed. With " +
      "--member-kubeconfig: clean that cluster although it does not say that it is this member",
    "--timeout <duration>": "how long pods and the controller may take (default: 5m; with --force 10s at most)",
  }),
  examples: {
    "unjoin west --drain --member-kubeconfig west.yaml": "move its pods elsewhere and leave nothing behind",
    "unjoin west": "nothing runs there; with the stored credentials",
    "unjoin west --force": "west burnt down",
  },
  input: withGlobals({
    name: memberName,
    memberKubeconfig: z.string().optional(),
    memberContext: z.string().optional(),
    drain: toggle,
    force: toggle,
    timeout: duration.default(300_000),
  }),
  working: "taking the member out",
  run: async (options, session) => {
    const { terminal } = session;
    const { name, drain, force, timeout, memberKubeconfig, memberContext } = options;
    const timeoutMs = force ? Math.min(timeout, LONGEST_FORCED_MS) : timeout;
    const host = await session.connect(options, "host");
    const member =
      memberKubeconfig === undefined
        ? undefined
        : await session.connect({ kubeconfig: memberKubeconfig, context: memberContext }, name);
    const result = await unjoin(
      { name, drain, force, timeoutMs },
      {
        ...hostContext(host, session),
        member,
        asController: async () => {
          const impersonate = CONTROLLER_USER;
          return (await session.connect({ ...options, impersonate }, "host")).client;
        },
      },
    );
    const rest = result.remained.map((what) => `\n  still in ${name}: ${what}`);
    const kept = result.kept.map((what) => `\n  kept on the host: ${what}`);
    const text = [`Cluster ${name} has left`, ...rest, ...kept].join("");
    printOutcome(terminal, options.output, { text, document: result });
  },
});
