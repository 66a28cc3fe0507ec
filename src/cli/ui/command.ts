import { once } from "node:events";
import { isIP } from "node:net";
import { setFlagsFromString } from "node:v8";
import { z } from "zod";
import { realClock } from "../../runtime/clock.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { commaList, flagRules, listenAddress, withGlobals } from "../shared/input.ts";
import { type ListenAddress, listenAt } from "../shared/listening.ts";
import { MemberClients, memberOpener } from "../shared/open-member.ts";
import type { Connection, Session } from "../shared/session.ts";
import { LiveView } from "./live-view.ts";
import { pageFiles } from "./page-files.ts";
import { requireRights } from "./required-rights.ts";
import { createPageServer } from "./server.ts";
import { SignIn } from "./sign-in.ts";
import { ViewInUse } from "./view-in-use.ts";

const ON_LOOPBACK: ListenAddress = { host: "127.0.0.1", port: 0 };
const EVERYWHERE: ListenAddress = listenAddress.parse(":8443");
const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1"]);

const input = withGlobals({
  listen: listenAddress.optional(),
  namespace: z.string().optional(),
  memberKubeconfig: z.string().optional(),
  signIn: z.enum(["address", "token"]).default("address"),
  hosts: commaList.default([]),
  trustedProxies: commaList
    .refine((networks) => networks.every(isNetwork), {
      error: "has to be IP addresses or networks with commas, e.g. 10.244.0.0/16,fd00::/8",
    })
    .default([]),
  tlsCertFile: z.string().optional(),
  tlsKeyFile: z.string().optional(),
})
  .refine(({ signIn, listen }) => signIn === "token" || listen === undefined || LOOPBACK.has(listen.host), {
    path: ["listen"],
    error: "is not a loopback address, and the page has no TLS; write e.g. 127.0.0.1:8080, or add --sign-in token",
  })
  .refine(
    ({ signIn, hosts, trustedProxies, tlsCertFile, tlsKeyFile }) =>
      signIn === "token" ||
      (hosts.length + trustedProxies.length === 0 && tlsCertFile === undefined && tlsKeyFile === undefined),
    {
      error:
        "--hosts, --trusted-proxies, --tls-cert-file and --tls-key-file are for --sign-in token: add it, or leave them out",
    },
  )
  .superRefine(flagRules({ needs: { tlsCertFile: "tlsKeyFile", tlsKeyFile: "tlsCertFile" } }))
  .refine(({ signIn, memberKubeconfig }) => signIn === "address" || memberKubeconfig === undefined, {
    error: "--member-kubeconfig would give its rights to all users of --sign-in token: leave one of them out",
  });
type UiInput = z.output<typeof input>;

/** `legation ui` */
export const command: Equip = equipped({
  description:
    "Serves a web page on this machine: the members with their room and their troubles, workloads and pods as they change, and " +
    "one pod's way, log and events. Everything is read with your own rights on the host, and nothing is stored. The address that " +
    "it prints works once, in one browser. With --sign-in token it serves HTTPS to a team: each user signs in with a bearer token.",
  flags: flags({
    "--listen <address>":
      "loopback address of the page (default: 127.0.0.1 and a free port); with --sign-in token any address (default: :8443)",
    "-n, --namespace <name>": "show this namespace only, e.g. where your rights end with it",
    "--member-kubeconfig <file>":
      "kubeconfig of your own for members, to show what they have: its context with the member's name, else its current " +
      "one (default: the way through the host)",
    "--sign-in <how>": "address, by the printed address, or token, by a bearer token for the host (default: address)",
    "--hosts <list>": "of --sign-in token: names by which browsers reach the page, separated by commas",
    "--trusted-proxies <list>":
      "of --sign-in token: networks of the Ingress before the page, e.g. 10.244.0.0/16, separated by commas: sign-ins are " +
      "limited by the address that its X-Forwarded-For names (default: by the address of the connection)",
    "--tls-cert-file <file>": "of --sign-in token: serve with this certificate (default: a self-signed one)",
    "--tls-key-file <file>": "its private key",
  }),
  examples: {
    ui: "then open the printed address",
    "ui --context production -n shop": "pods of one namespace",
    "ui --sign-in token --hosts legation.example.org": "for a team, behind a Service or an Ingress",
  },
  input,
  run: async (options, session) => {
    saveMemory();
    const connection = await session.connect(options, "host");
    if (options.signIn === "address") return serveOne(connection, options, session);
    const {
      listen = EVERYWHERE,
      hosts,
      trustedProxies,
      namespace,
      tlsCertFile: certFile,
      tlsKeyFile: keyFile,
    } = options;
    const certificateFiles = certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
    // Certificates cost memory that the page for one user does not need.
    const { serveUsers } = await import("./serve-users.ts");
    return serveUsers({ connection, listen, hosts, trustedProxies, certificateFiles, namespace, session });
  },
});

/** Reports whether the text is an IP address, or a network in CIDR notation. */
function isNetwork(text: string): boolean {
  const [address = "", bits = "0", ...more] = text.split("/");
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return more.length === 0 && /^\d+$/.test(bits) && Number(bits) <= most;
}

// Rows live long and the rest is little, so the young generation need not grow. Little code is hot: V8's two middle compilers
// take 8 MB for the rest. Optimizing undici's HTTP parser, which is WebAssembly, takes 25 MB, and glibc keeps parts of them.
const V8_FLAGS = [
  "--semi-space-growth-factor=1",
  "--no-sparkplug",
  "--no-maglev",
  "--no-wasm-dynamic-tiering",
  "--no-wasm-tier-up",
];

/** Sets V8's flags, before the HTTP client is loaded. */
function saveMemory(): void {
  for (const flag of V8_FLAGS) setFlagsFromString(flag);
}

/** Serves the page on this machine to the user who runs the command. */
async function serveOne(connection: Connection, options: UiInput, session: Session): Promise<void> {
  const { listen = ON_LOOPBACK, namespace, memberKubeconfig: kubeconfig } = options;
  const { signal, terminal } = session;
  const { client: host, clusterName = "host", namespace: current } = connection;
  await requireRights(host, namespace, signal);
  const view = new ViewInUse(() => new LiveView({ host, namespace, clock: realClock }), realClock);
  const openMember = memberOpener({
    host,
    signal,
    throughHost: (name) => session.openReading(options, name),
    own:
      kubeconfig === undefined
        ? undefined
        : async (name) => (await session.connect({ kubeconfig, preferredContext: name }, name)).client,
    remedy: "start the page with --member-kubeconfig",
  });
  const signIn = new SignIn({
    host,
    hostName: clusterName,
    namespace: namespace ?? current,
    only: namespace,
    view,
    members: new MemberClients(openMember),
    signal,
  });
  const server = createPageServer({ files: await pageFiles(), gate: signIn });
  // Never given back: the first page finds the pods read.
  view.take();
  try {
    const address = await listenAt("--listen", () => server.listen(listen));
    terminal.print(`${address}${signIn.path}`);
    terminal.progress("open this address in a browser on this machine; Ctrl-C ends the page");
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    await server.close();
    await view.stop();
  }
}
