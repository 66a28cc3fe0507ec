import { type Equip, equipped, flags } from "../shared/command.ts";
import { toggle, withGlobals } from "../shared/input.ts";
import { shippedManifests, withParts } from "../shared/manifests.ts";
import { printOutcome } from "../shared/output.ts";
import { uninstall } from "./uninstall.ts";

export const command: Equip = equipped({
  description:
    "Removes every object, finalizer and label of Legation from the host. It refuses while a member is joined, and, unless " +
    "--force deletes them, while delegated pods or whole Jobs have not finished. What the authors wrote themselves " +
    "(annotations on their workloads) stays. A controller that runs outside should be stopped first.",
  flags: flags({
    "--force": "delete delegated pods and whole Jobs that have not finished",
  }),
  examples: {
    uninstall: "after `legation unjoin` of each member",
    "uninstall --force": "delegated pods are deleted; their controllers start them on the host",
  },
  input: withGlobals({ force: toggle }),
  working: "uninstalling",
  run: async (options, session) => {
    const { terminal, signal } = session;
    const { client: host } = await session.connect(options, "host");
    const manifests = await withParts(await shippedManifests(), { access: true, relay: true, mcs: true });
    const result = await uninstall(manifests, options, { host, signal, report: (line) => terminal.progress(line) });
    const rest = result.remained.map((what) => `\n  remains: ${what}`).join("");
    const optedIn =
      result.namespaces.length === 0 ? "" : `\n  namespaces that were opted in: ${result.namespaces.join(", ")}`;
    printOutcome(terminal, options.output, { text: `Legation is uninstalled${optedIn}${rest}`, document: result });
  },
});
