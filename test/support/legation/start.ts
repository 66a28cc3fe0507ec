import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiRequest } from "../clusters/api-request.ts";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import { PlaneProcess } from "../clusters/plane-process.ts";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { metricsOf } from "../harness/metrics-of.ts";
import { eventually } from "../harness/wait.ts";
import { accessAvailable, installAccess, withdrawAccess } from "./access.ts";
import { hasJoined, joinBehindAgent, type RunningAgent, toldHubPort } from "./agent.ts";
import { startBalancer } from "./balancer.ts";
import { legation, MAIN } from "./cli.ts";
import { ensureInstalled, installedPort } from "./installation.ts";

/** The clusters and settings of a start. */
export interface LegationOptions {
  readonly host: Cluster;
  /** Members to join, by the name they get; one that has joined already is left as it is. */
  readonly members: Readonly<Record<string, Cluster>>;
  /** Labels of the Clusters, by name. */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * Members that are reached through agents, with the port of this machine on which the agent finds the hub. Default: those that
   * LEGATION_TEST_AGENTS names.
   */
  readonly agents?: ReadonlyMap<string, number>;
  /** Has controllers take agents at `hubPort`, also of members that join directly at first. Default: where LEGATION_TEST_AGENTS does. */
  readonly takesAgents?: boolean;
  /** Reach members through their fault proxies. Default true. */
  readonly proxied?: boolean;
  /** Real pods of members behind agents (LEGATION_TEST_AGENTS) reach the host's API server through these. Default false. */
  readonly homeApiThroughAgents?: boolean;
  /** More flags of `legation controller`. */
  readonly controllerFlags?: readonly string[];
  /** API server that the controller sees as the host's, e.g. a gate in front of it. Default: the host's own. */
  readonly controllerServer?: { readonly server: string; readonly caData: string };
  /** Script to run in place of the sources, e.g. what `npm run build` made, or a release: it installs, joins and serves. */
  readonly main?: string;
  /** Address of the webhook for the API server, when something stands before it. Default: the webhook's own. */
  readonly webhookUrl?: string;
  /** Options of Node itself. */
  readonly nodeFlags?: readonly string[];
  /** Variables of both processes. */
  readonly env?: Readonly<Record<string, string>>;
  /** Starts a process that ends of itself again, as its Deployment would. Default false. */
  readonly restart?: boolean;
  readonly onProgress?: (line: string) => void;
}

/** Legation as its users run it: two processes with their own service accounts, outside the cluster. */
export interface Legation extends AsyncDisposable {
  readonly host: Cluster;
  readonly controller: LegationProcess;
  readonly webhook: LegationProcess;
  readonly webhookPort: number;
  /** Agents of members, by name. */
  readonly agents: ReadonlyMap<string, RunningAgent>;
  /** Port of this machine at which agents find the leader. 0: `controllerFlags` say so. */
  readonly hubPort: number;
  /** Makes one more of its processes, which runs beside the first once it is started, and ends with it. */
  another(kind: ProcessKind, args: readonly string[], main?: string): Promise<LegationProcess>;
  /** Installs access to members, and starts its server unless it runs. Resolves once the host passes requests on. */
  access(): Promise<LegationProcess>;
  /** Waits until members behind agents answer this controller, which has just started. */
  whenAnswered(): Promise<void>;
  /** Joins one more member. */
  join(name: string, member: Cluster, labels?: string): Promise<void>;
  /** Ends both processes and removes their files; the installation and its Clusters stay. */
  stop(): Promise<void>;
}

/** The subcommands that serve. */
export type ProcessKind = "controller" | "webhook" | "access" | "relay";

/** A process of Legation. */
export interface LegationProcess {
  /** Everything it has logged. */
  log(): string;
  readonly pid: number | undefined;
  /** Resolves to the last lines of its log if it ends by itself. */
  whenEnded(): Promise<string>;
  start(): Promise<void>;
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
}

// A controller that is started again under its name leads at once, and the lease is long enough for a busy machine.
const LEADING = ["--identity=test", "--lease-duration=60s"];
const RESTART_AFTER_MS = 1_000;
/** The last words of a controller that no longer leads. */
const LEASE_LOST = "another controller holds it, or it could not be renewed in time";

// Another process of the tests may take a port between the look at it and its use.
const PORT_ATTEMPTS = 3;
const PORT_TAKEN = /EADDRINUSE/;

/** Installs Legation on the host, starts its processes and joins the members. */
export async function startLegation(options: LegationOptions): Promise<Legation> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // Starts on one host share a port, so that the installation stays valid.
      const port = attempt === 1 ? installedPort(options.host) : undefined;
      return await startOnFreePorts(options, port ?? (await freePort()));
    } catch (error) {
      if (attempt === PORT_ATTEMPTS || !PORT_TAKEN.test(String(error))) throw error;
      options.onProgress?.("a port was taken by someone else; trying others");
    }
  }
}

const READY: Readonly<Record<ProcessKind, (log: string) => boolean>> = {
  access: (log) => log.includes("access serves"),
  relay: (log) => log.includes("relay serves"),
  webhook: (log) => log.includes("webhook serves"),
  // A controller may have to wait until it leads.
  controller: () => true,
};

async function startOnFreePorts(options: LegationOptions, port: number): Promise<Legation> {
  const { host, members, labels = {}, onProgress, main = MAIN } = options;
  const directory = mkdtempSync(join(tmpdir(), "legation-run-"));
  onProgress?.("installing Legation on the host");
  const { webhookUrl = `https://127.0.0.1:${port}` } = options;
  await ensureInstalled(host, { webhookUrl, main });
  const processes: LegationProcess[] = [];
  const fallen: string[] = [];
  const { takesAgents = options.agents === undefined && BEHIND_AGENTS.length > 0 } = options;
  const hubPort = takesAgents ? ((await toldHubPort(host)) ?? (await freePort())) : 0;
  // Only the leader listens for agents, so that each controller has a port of its own behind theirs.
  const hubs = takesAgents ? await startBalancer(hubPort) : undefined;
  const prepare = async (
    kind: ProcessKind,
    args: readonly string[],
    ready: (log: string) => boolean,
    script = main,
  ): Promise<LegationProcess> => {
    const name = `${kind}-${processes.length}`;
    const kubeconfig = await accountKubeconfig(host, `legation-${kind}`, join(directory, `${name}.yaml`), options);
    const ownHub = kind === "controller" && hubs !== undefined ? await freePort() : undefined;
    if (ownHub !== undefined) hubs?.add(ownHub);
    const hubFlags = ownHub === undefined ? [] : [`--hub-listen=127.0.0.1:${ownHub}`];
    const logFile = join(directory, `${name}.log`);
    const read = (): string => readOr(logFile, "");
    let seen = 0;
    let restart: NodeJS.Timeout | undefined;
    const plane = new PlaneProcess({
      name,
      command: process.execPath,
      args: [...(options.nodeFlags ?? []), script, kind, `--kubeconfig=${kubeconfig}`, ...hubFlags, ...args],
      ...(options.env === undefined ? {} : { env: options.env }),
      logFile,
      // Lines of an earlier start do not count.
      ready: async () => ready(read().slice(seen)),
      readyTimeoutMs: 180_000,
      onEnded: (tail) => {
        // A lease is lost on a machine that is too busy; nothing else may end a process that should go on.
        if (!read().slice(seen).includes(LEASE_LOST)) fallen.push(`${name} ended of itself:\n${tail}`);
        if (options.restart !== true) return;
        restart = setTimeout(() => {
          made.start().catch((error: unknown) => fallen.push(String(error)));
        }, RESTART_AFTER_MS);
      },
    });
    const made: LegationProcess = {
      log: read,
      get pid() {
        return plane.pid;
      },
      whenEnded: () => plane.whenEnded(),
      start: () => {
        clearTimeout(restart);
        if (!plane.running) seen = read().length;
        return plane.start();
      },
      stop: (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
        clearTimeout(restart);
        return plane.stop(signal);
      },
      // A frozen process still takes connections, and the next leader becomes the only endpoint of the hub's Service.
      freeze: async () => {
        await plane.freeze();
        if (ownHub !== undefined) hubs?.remove(ownHub);
      },
      thaw: () => {
        if (ownHub !== undefined) hubs?.add(ownHub);
        plane.thaw();
      },
    };
    processes.push(made);
    return made;
  };
  const webhook = await prepare("webhook", [`--listen=127.0.0.1:${port}`], READY.webhook);
  const agents = new Map<string, RunningAgent>();
  // Their manifests may not have been applied.
  const halfJoined = new Set<string>();
  const hubPorts = options.agents ?? new Map(BEHIND_AGENTS.map((name) => [name, hubPort]));
  const joins = async (name: string, member: Cluster, written?: string): Promise<void> => {
    const port = hubPorts.get(name);
    if (port === undefined) return await joinMember(options, name, member, written);
    const known = agents.get(name);
    if (known !== undefined && (await hasJoined(host, name))) return await known.start();
    const again = known === undefined && halfJoined.has(name);
    await known?.stop("SIGKILL");
    agents.delete(name);
    halfJoined.add(name);
    const args = written === undefined ? [] : [`--labels=${written}`];
    const server = options.proxied === false ? member.server : member.proxiedServer;
    const homeApi = options.homeApiThroughAgents === true;
    agents.set(name, await joinBehindAgent(host, member, { name, hubPort: port, args, server, again, homeApi }));
    halfJoined.delete(name);
  };
  const given = options.controllerFlags ?? [];
  const healthPort = portOf(given, "--health-listen") ?? (hubPorts.size > 0 ? await freePort() : undefined);
  const controllerFlags = [
    ...LEADING,
    `--kubelet-listen=127.0.0.1:${await freePort()}`,
    ...(healthPort === undefined ? [] : [`--health-listen=127.0.0.1:${healthPort}`]),
    ...given,
  ];
  const controller = await prepare("controller", controllerFlags, (log) => log.includes("controllers started"));
  let access: Promise<LegationProcess> | undefined;
  const serveAccess = async (): Promise<LegationProcess> => {
    const accessPort = await freePort();
    await installAccess(host, accessPort);
    const server = await prepare("access", [`--listen=127.0.0.1:${accessPort}`], READY.access);
    await server.start();
    await accessAvailable(host);
    return server;
  };
  const started: Legation = {
    host,
    controller,
    webhook,
    webhookPort: port,
    agents,
    hubPort,
    another: (kind, args, script) => prepare(kind, args, READY[kind], script),
    access: () => {
      access ??= serveAccess();
      return access;
    },
    whenAnswered: async () => {
      for (const name of agents.keys()) await answers(name, healthPort ?? 0);
    },
    join: joins,
    stop: async () => {
      if (access !== undefined) await withdrawAccess(host);
      await Promise.all([...agents.values(), ...processes].map((process) => process.stop()));
      await hubs?.[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
      if (options.restart === true && fallen.length > 0) throw new Error(fallen.join("\n"));
    },
    [Symbol.asyncDispose]: () => started.stop(),
  };
  try {
    onProgress?.("starting webhook and controller");
    await Promise.all([webhook.start(), controller.start()]);
    for (const [name, member] of Object.entries(members)) {
      onProgress?.(`joining ${name}`);
      await joins(name, member, labels[name]);
    }
    await started.whenAnswered();
  } catch (error) {
    await started.stop();
    throw error;
  }
  return started;
}

/** Waits until the member answers this controller: its Cluster may still be Ready from the time of an earlier one. */
async function answers(name: string, healthPort: number): Promise<void> {
  await eventually(async () => (await metricsOf(healthPort))(`legation_member_reachable{cluster="${name}"}`) === 1, {
    timeoutMs: 180_000,
    what: `${name} answers through its agent`,
  });
}

/** Returns the port of a flag `NAME=HOST:PORT`. */
function portOf(flags: readonly string[], name: string): number | undefined {
  const flag = flags.find((each) => each.startsWith(`${name}=`));
  return flag === undefined ? undefined : Number(flag.slice(flag.lastIndexOf(":") + 1));
}

/** Variable with names of members that are reached through an agent, to run the suite in that way. */
const BEHIND_AGENTS: readonly string[] = (process.env.LEGATION_TEST_AGENTS ?? "")
  .split(",")
  .filter((name) => name !== "");

async function joinMember(options: LegationOptions, name: string, member: Cluster, labels?: string): Promise<void> {
  const { host, proxied = true, main } = options;
  if (await hasJoined(host, name)) return;
  await legation(
    [
      "join",
      name,
      `--kubeconfig=${host.kubeconfig}`,
      `--member-kubeconfig=${member.kubeconfig}`,
      ...(proxied ? [`--member-server=${member.proxiedServer}`] : []),
      ...(labels === undefined ? [] : [`--labels=${labels}`]),
    ],
    main === undefined ? {} : { main },
  );
}

/** A kubeconfig with a token of one of Legation's service accounts: never an administrator's. */
export async function accountKubeconfig(
  host: Cluster,
  account: string,
  file: string,
  { controllerServer }: Pick<LegationOptions, "controllerServer">,
): Promise<string> {
  const namespace = ["legation-access", "legation-relay"].includes(account) ? account : "legation-system";
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 86_400 } };
  const answer = await apiRequest(host, "POST", path, { body });
  if (answer.status !== 201) throw new Error(`no token for ${account}: ${answer.text}`);
  const { status } = JSON.parse(answer.text) as { status: { token: string } };
  const seen = account === "legation-controller" && controllerServer !== undefined ? controllerServer : host;
  const { server, caData } = seen;
  writeFileSync(file, kubeconfigText({ name: "host", server, caData, user: account, token: status.token }), {
    mode: 0o600,
  });
  return file;
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return otherwise;
  }
}
