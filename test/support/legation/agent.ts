import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiRequest } from "../clusters/api-request.ts";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import { PlaneProcess } from "../clusters/plane-process.ts";
import type { Cluster } from "../clusters/types.ts";
import { MAIN } from "./cli.ts";

/** An agent as its Deployment runs it, but outside the member. */
export interface RunningAgent extends Pick<PlaneProcess, "start" | "freeze" | "thaw"> {
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  log(): string;
}

/** Prepares the agent of a manifest that was applied in the member. `secret` is also the name of its service account. */
export async function agentOf(
  member: Cluster,
  secret: string,
  { args = [], env }: { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<RunningAgent> {
  const directory = mkdtempSync(join(tmpdir(), "legation-agent-"));
  const path = `/api/v1/namespaces/legation-system/serviceaccounts/${secret}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 86_400 } };
  const answer = await apiRequest(member, "POST", path, { body });
  if (answer.status !== 201) throw new Error(`no token for ${secret}: ${answer.text}`);
  const { status } = JSON.parse(answer.text) as { status: { token: string } };
  const { server, caData } = member;
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
