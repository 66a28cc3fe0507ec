import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { installDefinitions, removeDefinitions } from "../harness/definitions.ts";
import { kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { templateChart } from "../legation/chart.ts";
import { ensurePrograms } from "./programs.ts";
import { startProgram } from "./run.ts";

/** A program of cert-manager for a cluster, as a process of this machine. */
export interface CertManager {
  output(): string;
  stop(): Promise<void>;
}

const NAMESPACE = "cert-manager";

/** Installs cert-manager's definitions in a cluster, without its webhook. */
export async function installCertManager(cluster: Cluster): Promise<void> {
  await installDefinitions(cluster, join(await programs(), "crds"));
}

/** Removes the definitions with all their objects. */
export async function removeCertManager(cluster: Cluster): Promise<void> {
  await removeDefinitions(cluster, join(await programs(), "crds"));
}

/** Starts the controllers in a cluster that has the definitions. */
export async function startCertManager(cluster: Cluster): Promise<CertManager> {
  return start(cluster, "controller");
}

/** Installs cert-manager, and starts its controllers, CA injector and webhook. The cluster's end is the objects' end. */
export async function startWholeCertManager(cluster: Cluster): Promise<Pick<CertManager, "stop">> {
  await installCertManager(cluster);
  await kubectl(cluster, ["create", "namespace", NAMESPACE]);
  const port = await freePort();
  const started: CertManager[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((program) => program.stop()));
  };
  try {
    for (const name of ["controller", "cainjector", "webhook"] as const) {
      started.push(await start(cluster, name, { PORT: String(port), NAMESPACE }));
    }
    await callWebhook(cluster, `localhost:${port}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/** Has the API server call the webhook, by the configurations of cert-manager's chart. Resolves once the calls are trusted. */
async function callWebhook(cluster: Cluster, host: string): Promise<void> {
  const templates = ["mutating", "validating"].map((kind) => `--show-only=templates/webhook-${kind}-webhook.yaml`);
  const chart = join(await programs(), "chart");
  const args = ["cert-manager", chart, `--namespace=${NAMESPACE}`, ...templates, `--set=webhook.url.host=${host}`];
  await kubectl(cluster, ["apply", "-f", "-"], { input: await templateChart(args) });
  const issuer = {
    apiVersion: "cert-manager.io/v1",
    kind: "Issuer",
    metadata: { name: "first", namespace: NAMESPACE },
    spec: { selfSigned: {} },
  };
  const create = ["create", "--dry-run=server", "-o", "name", "-f", "-"];
  await eventually(() => kubectl(cluster, create, { input: JSON.stringify(issuer) }), {
    timeoutMs: 60_000,
    intervalMs: 500,
    what: "cert-manager's webhook",
  });
}

function programs(): Promise<string> {
  return ensurePrograms("cert-manager", (line) => process.stderr.write(`cert-manager: ${line}\n`));
}

/** Starts a program of cert-manager. Resolves once it answers. */
async function start(
  cluster: Cluster,
  name: "controller" | "cainjector" | "webhook",
  settings: NodeJS.ProcessEnv = {},
): Promise<CertManager> {
  const folder = await programs();
  const port = await freePort();
  const health = { HEALTH_ADDRESS: `127.0.0.1:${port}`, HEALTH_PORT: String(port) };
  const directory = mkdtempSync(join(tmpdir(), `legation-cert-manager-${name}-`));
  const program = startProgram(join(folder, name), [], {
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig, ...health, ...settings },
    cwd: directory,
    logFile: join(directory, "log"),
  });
  const stop = async (): Promise<void> => {
    program.kill("SIGTERM");
    await program.ended;
    rmSync(directory, { recursive: true, force: true });
  };
  const answers = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok;
  try {
    await eventually(answers, { timeoutMs: 60_000, intervalMs: 200, what: `cert-manager's ${name}` });
  } catch (error) {
    await stop();
    throw new Error(`${String(error)}:\n${program.output().slice(-4000)}`);
  }
  return { output: program.output, stop };
}
