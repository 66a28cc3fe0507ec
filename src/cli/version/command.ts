import { type Equip, equipped, flags } from "../shared/command.ts";
import { toggle, withGlobals } from "../shared/input.ts";
import { printOutcome } from "../shared/output.ts";
import { packageVersion } from "../shared/package-root.ts";
import { type HostVersions, readHostVersions } from "./installed.ts";
import { versionText } from "./text.ts";

export const command: Equip = equipped({
  description:
    "Prints the version of the command line, and those on the host: of Kubernetes, of the installation, of the pods that run, " +
    "of members and their agents. If the host cannot be reached, it prints the command line's and fails.",
  flags: flags({
    "--client": "print the version of the command line only; no cluster is asked",
  }),
  examples: {
    version: "of the command line, the host and the members",
    "version --client": "of the command line",
    "version -o json | jq -r .host.legation.version": "of the installation, for a script",
  },
  input: withGlobals({ client: toggle }),
  run: async (options, session) => {
    const { terminal, signal } = session;
    const client = { version: packageVersion(), node: process.version };
    const print = (host?: HostVersions): void => {
      const text = versionText(client, host, terminal.width);
      printOutcome(terminal, options.output, { text, document: { client, host } });
    };
    if (options.client) return print();
    let host: HostVersions;
    try {
      const connection = await session.connect(options, "host");
      host = await readHostVersions(connection.client, connection.server, signal);
    } catch (error) {
      print();
      throw error;
    }
    print(host);
  },
});
