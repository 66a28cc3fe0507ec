import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { ensurePrograms } from "./programs.ts";
import { startProgram } from "./run.ts";

/** cert-manager's controllers for a cluster, as a process of this machine. */
export interface CertManager {
  output(): string;
  stop(): Promise<void>;
}

/** Installs cert-manager's definitions in a cluster, without its webhook. */
export async function installCertManager(cluster: Cluster): Promise<void> {
  const crds = await crdFolder();
  await kubectl(cluster, ["apply", "--server-side", "-f", crds]);
  await kubectl(cluster, ["wait", "--for=condition=Established", "-f", crds]);
}

/** Removes the definitions with all their objects. */
export async function removeCertManager(cluster: Cluster): Promise<void> {
  await kubectl(cluster, ["delete", "--ignore-not-found", "-f", await crdFolder()]);
}

async function crdFolder(): Promise<string> {
  return join(await ensurePrograms("cert-manager", () => {}), "crds");
}

/** Starts the controllers in a cluster that has the definitions. */
export async function startCertManager(cluster: Cluster): Promise<CertManager> {
  const folder = await ensurePrograms("cert-manager", () => {});
  const address = `127.0.0.1:${await freePort()}`;
  const directory = mkdtempSync(join(tmpdir(), "legation-cert-manager-"));
  const program = startProgram(join(folder, "cert-manager"), [], {
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig, HEALTH_ADDRESS: address },
    cwd: directory,
    logFile: join(directory, "log"),
  });
  const stop = async (): Promise<void> => {
    program.kill("SIGTERM");
    await program.ended;
  };
  const answers = async (): Promise<boolean> => (await fetch(`http://${address}/`)).ok;
  try {
    await eventually(answers, { timeoutMs: 60_000, intervalMs: 200, what: "cert-manager" });
  } catch (error) {
    await stop();
    throw new Error(`${String(error)}:\n${program.output().slice(-4000)}`);
  }
  return { output: program.output, stop };
}
