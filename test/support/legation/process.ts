import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { apiRequest } from "../clusters/api-request.ts";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import type { Cluster } from "../clusters/types.ts";

const MAIN = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));

/** How one run of `legation` ended. */
export interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** `legation` as a process of its own. */
export class LegationProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<Run>;
  #out = "";
  #err = "";

  /** Starts it against a host, with nothing of this process's environment but PATH. */
  constructor(hostKubeconfig: string, args: readonly string[]) {
    this.#child = spawn(process.execPath, [MAIN, ...args], {
      env: { PATH: process.env.PATH, HOME: "/nonexistent", LEGATION_KUBECONFIG: hostKubeconfig },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      this.#out += chunk.toString();
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.#err += chunk.toString();
    });
    this.#ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code) => resolve({ code, out: this.#out, err: this.#err }));
    });
  }

  /** What it has written to standard error so far. */
  get err(): string {
    return this.#err;
  }

  /** What it has written to standard output so far. */
  get out(): string {
    return this.#out;
  }

  ended(): Promise<Run> {
    return this.#ended;
  }

  /** Sends a signal and waits for the end. */
  stop(signal: "SIGTERM" | "SIGINT" | "SIGKILL" = "SIGTERM"): Promise<Run> {
    this.#child.kill(signal);
    return this.#ended;
  }
}

/** Runs `legation` with an administrator's kubeconfig of the host, to its end. */
export function legation(host: Cluster, ...args: string[]): Promise<Run> {
  return new LegationProcess(host.kubeconfig, args).ended();
}

/** A kubeconfig of one of Legation's service accounts on the host: the rights of the manifests, never an admin's. */
export async function accountKubeconfig(
  host: Cluster,
  account: "legation-controller" | "legation-webhook",
): Promise<{ readonly path: string; readonly remove: () => Promise<void> }> {
  const path = `/api/v1/namespaces/legation-system/serviceaccounts/${account}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 7200 } };
  const answer = await apiRequest(host, "POST", path, { body });
  if (answer.status !== 201) throw new Error(`no token for ${account}: ${answer.text}`);
  const { status }: { status: { token: string } } = JSON.parse(answer.text);
  const folder = await mkdtemp(join(tmpdir(), "legation-account-"));
  const file = join(folder, "kubeconfig");
  const { name, server, caData } = host;
  await writeFile(file, kubeconfigText({ name, server, caData, user: account, token: status.token }), { mode: 0o600 });
  return { path: file, remove: () => rm(folder, { recursive: true, force: true }) };
}
