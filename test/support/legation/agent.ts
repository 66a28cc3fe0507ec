import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiRequest } from "../clusters/api-request.ts";
import { findBinaries } from "../clusters/binaries.ts";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import { PlaneProcess } from "../clusters/plane-process.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { legation, MAIN } from "./cli.ts";

// In certificates of API servers. The agent alone resolves it, so that a test fails where anything else connects to a member.
const PRIVATE_NAME = "kubernetes.default.svc";
const RESOLVING = join(import.meta.dirname, "..", "tunnel", "private-name.ts");

/** An agent as its Deployment runs it, but outside the member. */
export interface RunningAgent extends Pick<PlaneProcess, "start" | "freeze" | "thaw"> {
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Restarts it with another address of its API server. */
  reach(api: Pick<Cluster, "server" | "caData">): Promise<void>;
  /** Replaces the authority (PEM) of its API server, as the kubelet does in a running pod. */
  trust(authority: string): void;
  log(): string;
}

/** Prepares the agent of a manifest that was applied in the member. `secret` is also the name of its service account. */
export async function agentOf(
  member: Cluster,
  secret: string,
  {
    args = [],
    env,
    server = member.server,
    caData = member.caData,
    token,
    within = [],
    nodeFlags = [],
  }: {
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    /** Address of the member's API server. */
    readonly server?: string;
    /** Authority (PEM) of that address. Default: the member's own. */
    readonly caData?: string;
    /** Token of the service account; default: a new one. */
    readonly token?: string;
    /** Goes before the command, e.g. to run it in a network namespace. */
    readonly within?: readonly string[];
    /** Options of Node itself. */
    readonly nodeFlags?: readonly string[];
  } = {},
): Promise<RunningAgent> {
  const directory = mkdtempSync(join(tmpdir(), "legation-agent-"));
  const kubeconfig = join(directory, "kubeconfig.yaml");
  const account = { user: secret, token: token ?? (await tokenOf(member, secret)) };
  const caFile = join(directory, "ca.crt");
  const trust = (authority: string): void => writeFileSync(caFile, authority);
  const write = (api: Pick<Cluster, "server" | "caData">): void => {
    trust(api.caData);
    writeFileSync(kubeconfig, kubeconfigText({ name: "member", ...api, caFile, ...account }), { mode: 0o600 });
  };
  write({ server, caData });
  const logFile = join(directory, "agent.log");
  const log = (): string => {
    try {
      return readFileSync(logFile, "utf8");
    } catch {
      return "";
    }
  };
  const [command = "", ...first] = [...within, process.execPath];
  const plane = new PlaneProcess({
    name: "agent",
    command,
    args: [...first, ...nodeFlags, MAIN, "agent", `--kubeconfig=${kubeconfig}`, `--secret=${secret}`, ...args],
    ...(env === undefined ? {} : { env }),
    logFile,
    ready: async () => true,
    readyTimeoutMs: 180_000,
  });
  return {
    log,
    start: () => plane.start(),
    stop: (signal = "SIGTERM") => plane.stop(signal),
    reach: async (api) => {
      await plane.stop("SIGKILL");
      write({ server: api.server, caData: api.caData });
      await plane.start();
    },
    freeze: () => plane.freeze(),
    thaw: () => plane.thaw(),
    trust,
  };
}

/** Requests a token of a service account in Legation's namespace. */
async function tokenOf(member: Cluster, account: string): Promise<string> {
  const path = `/api/v1/namespaces/legation-system/serviceaccounts/${account}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 86_400 } };
  const answer = await apiRequest(member, "POST", path, { body });
  if (answer.status !== 201) throw new Error(`no token for ${account}: ${answer.text}`);
  const { status } = JSON.parse(answer.text) as { status: { token: string } };
  return status.token;
}

/** Reports whether there is a Cluster of this name. */
export async function hasJoined(host: Cluster, name: string): Promise<boolean> {
  return (await apiRequest(host, "GET", `/apis/legation.dev/v1alpha1/clusters/${name}`)).status === 200;
}

/** Port of the hub to which agents of a host were told to connect. Undefined before the first join with an agent. */
export async function toldHubPort(host: Cluster): Promise<number | undefined> {
  const { status, text } = await apiRequest(host, "GET", "/api/v1/namespaces/legation-system/secrets/legation-hub");
  if (status !== 200) return undefined;
  const port = /"legation.dev\/hub-addresses":\s*"127\.0\.0\.1:(\d+)"/.exec(text)?.[1];
  return port === undefined ? undefined : Number(port);
}

/**
 * Joins a member by the manifest that `legation join --agent` prints, unless it has joined, and returns its agent. The manifest's
 * Deployment is left out: the agent runs on this machine.
 */
export async function joinBehindAgent(
  host: Cluster,
  member: Cluster,
  options: {
    readonly name: string;
    readonly hubPort: number;
    readonly args: readonly string[];
    /** Address of the member's API server, which the host is told by a name that it does not resolve. */
    readonly server: string;
    /** Joins again although it has joined, since the manifest may not have been applied. */
    readonly again: boolean;
    /** Real pods of the member reach the host's API server through the agent, too. */
    readonly homeApi?: boolean;
  },
): Promise<RunningAgent> {
  const { name, hubPort, args, server, again, homeApi = false } = options;
  // Also outside the test runner.
  const { kubectl: program } = await findBinaries();
  const { text } = await apiRequest(host, "GET", `/apis/legation.dev/v1alpha1/clusters/${name}`);
  const { spec = {} } = JSON.parse(text) as { spec?: { agent?: { homeAPI?: boolean } } };
  const isThrough = spec.agent?.homeAPI === true;
  // An earlier file may have joined it directly.
  if (again || spec.agent === undefined || (homeApi && !isThrough)) {
    const hub = [`--hub-address=127.0.0.1:${hubPort}`, ...(homeApi ? ["--home-api-through-agent"] : [])];
    const manifest = await legation(["join", name, "--agent", ...hub, `--kubeconfig=${host.kubeconfig}`, ...args]);
    const objects = manifest.split(/^---$/m).filter((object) => !object.includes("kind: Deployment"));
    const input = objects.join("---\n");
    await kubectl(member, ["apply", "--server-side", "--force-conflicts", "-f", "-"], { input, program });
  }
  const uid = ["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"];
  const hostId = (await kubectl(host, uid, { program })).slice(0, 8);
  const secret = `legation-agent-${hostId}`;
  const { hostname, port } = new URL(server);
  const hidden = {
    server: `https://${PRIVATE_NAME}:${port}`,
    env: { LEGATION_TEST_PRIVATE_NAME: `${PRIVATE_NAME}=${hostname}` },
    nodeFlags: [`--import=${RESOLVING}`],
  };
  if (!homeApi) {
    const direct = '{"spec":{"agent":{"homeAPI":null}}}';
    if (isThrough)
      await kubectl(host, ["patch", "clusters.legation.dev", name, "--type=merge", "-p", direct], { program });
    const agent = await agentOf(member, secret, hidden);
    await agent.start();
    return agent;
  }
  const service = ["-n", "legation-system", "get", "service", secret, "-o", "jsonpath={.spec.clusterIP}"];
  const address = await kubectl(member, service, { program });
  // Nodes lead Services' addresses to this machine, where no proxy leads them on.
  const own = (verb: "replace" | "delete"): unknown => spawnSync("ip", ["address", verb, `${address}/32`, "dev", "lo"]);
  const listens = [`--home-api-listen=${address}:443`, `--home-api-service=${secret}`];
  const agent = await agentOf(member, secret, { ...hidden, args: listens });
  const listening: RunningAgent = {
    ...agent,
    start: async () => {
      own("replace");
      await agent.start();
    },
    stop: async (signal) => {
      await agent.stop(signal);
      own("delete");
    },
  };
  await listening.start();
  return listening;
}
