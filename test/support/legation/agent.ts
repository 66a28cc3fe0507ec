import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiRequest } from "../clusters/api-request.ts";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import { PlaneProcess } from "../clusters/plane-process.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { legation, MAIN } from "./cli.ts";

/** An agent as its Deployment runs it, but outside the member. */
export interface RunningAgent extends Pick<PlaneProcess, "start" | "freeze" | "thaw"> {
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
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
  }: {
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
    /** Address of the member's API server. */
    readonly server?: string;
  } = {},
): Promise<RunningAgent> {
  const directory = mkdtempSync(join(tmpdir(), "legation-agent-"));
  const path = `/api/v1/namespaces/legation-system/serviceaccounts/${secret}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 86_400 } };
  const answer = await apiRequest(member, "POST", path, { body });
  if (answer.status !== 201) throw new Error(`no token for ${secret}: ${answer.text}`);
  const { status } = JSON.parse(answer.text) as { status: { token: string } };
  const { caData } = member;
  const kubeconfig = join(directory, "kubeconfig.yaml");
  const text = kubeconfigText({ name: "member", server, caData, user: secret, token: status.token });
  writeFileSync(kubeconfig, text, { mode: 0o600 });
  const logFile = join(directory, "agent.log");
  const log = (): string => {
    try {
      return readFileSync(logFile, "utf8");
    } catch {
      return "";
    }
  };
  const plane = new PlaneProcess({
    name: "agent",
    command: process.execPath,
    args: [MAIN, "agent", `--kubeconfig=${kubeconfig}`, `--secret=${secret}`, ...args],
    ...(env === undefined ? {} : { env }),
    logFile,
    ready: async () => true,
    readyTimeoutMs: 30_000,
  });
  return {
    log,
    start: () => plane.start(),
    stop: (signal = "SIGTERM") => plane.stop(signal),
    freeze: () => plane.freeze(),
    thaw: () => plane.thaw(),
  };
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
    readonly server: string;
  },
): Promise<RunningAgent> {
  const { name, hubPort, args, server } = options;
  const { status } = await apiRequest(host, "GET", `/apis/legation.dev/v1alpha1/clusters/${name}`);
  if (status !== 200) {
    const hub = `--hub-address=127.0.0.1:${hubPort}`;
    const text = await legation(["join", name, "--agent", hub, `--kubeconfig=${host.kubeconfig}`, ...args]);
    const objects = text.split(/^---$/m).filter((object) => !object.includes("kind: Deployment"));
    await kubectl(member, ["apply", "--server-side", "--force-conflicts", "-f", "-"], { input: objects.join("---\n") });
  }
  const hostId = (await kubectl(host, ["get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"])).slice(
    0,
    8,
  );
  const agent = await agentOf(member, `legation-agent-${hostId}`, { server });
  await agent.start();
  return agent;
}
