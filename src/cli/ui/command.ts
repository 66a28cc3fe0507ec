import { once } from "node:events";
import { z } from "zod";
import { realClock } from "../../runtime/clock.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { flag, type Subcommand } from "../shared/command.ts";
import { type GlobalInput, listenAddress, withGlobals } from "../shared/input.ts";
import { type ListenAddress, listenAt } from "../shared/listening.ts";
import { asViewer, listClusters } from "../shared/reading.ts";
import { LiveView } from "./live-view.ts";
import { pageFiles } from "./page-files.ts";
import { createPageServer } from "./server.ts";
import { SignIn } from "./sign-in.ts";

interface UiInput extends GlobalInput {
  readonly listen: ListenAddress;
  readonly namespace?: string | undefined;
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"]);

/** `legation ui` */
export const uiCommand: Subcommand<UiInput> = {
  description:
    "Serves a web page on this machine: the members with their room and their troubles, workloads and pods as they change, and " +
    "one pod's way, log and events. Everything is read with your own rights on the host, and nothing is stored. The address that " +
    "it prints works once, in one browser.",
  flags: [
    flag("--listen <address>", "loopback address of the page (default: 127.0.0.1 and a free port)"),
    flag("-n, --namespace <name>", "show the pods of this namespace only, e.g. where you may not list all pods"),
  ],
  examples: [
    ["ui", "then open the printed address"],
    ["ui --context production -n shop", "pods of one namespace"],
  ],
  input: withGlobals({
    listen: listenAddress.prefault("127.0.0.1:0").refine(({ host }) => LOOPBACK.has(host), {
      error: "is not a loopback address, and the page has no TLS; write e.g. 127.0.0.1:8080",
    }),
    namespace: z.string().optional(),
  }),
  run: async ({ listen, namespace, ...options }, session) => {
    const { signal, terminal } = session;
    const { client, clusterName = "host", namespace: current } = await session.connect(options, "host");
    // Refuses early, with the role that is missing.
    await asViewer(listClusters(client, signal));
    const view = new LiveView({ host: client, namespace, clock: realClock, log: createLogger({ level: "silent" }) });
    const signIn = new SignIn();
    const server = createPageServer({
      host: client,
      hostName: clusterName,
      namespace: namespace ?? current,
      view,
      files: await pageFiles(),
      signIn,
      session,
    });
    view.start();
    try {
      const address = await listenAt("--listen", () => server.listen(listen));
      terminal.print(`${address}${signIn.path}`);
      terminal.progress("open this address in a browser on this machine; Ctrl-C ends the page");
      if (!signal.aborted) await once(signal, "abort");
    } finally {
      await server.close();
      await view.stop();
    }
  },
};
