import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { IMAGE } from "./clusters.ts";
import type { GivenFile } from "./given-files.ts";
import { ensurePrograms } from "./programs.ts";
import { type EngineProgram, startProgram } from "./run.ts";

const NAMESPACE = "tekton-pipelines";
const WEBHOOK = "tekton-pipelines-webhook";
/** The node's one image under another name: sidecars end by a change of theirs. */
const NOP_IMAGE = "localhost/pause:1";
const IMAGE_FLAGS = [
  "entrypoint-image",
  "sidecarlogresults-image",
  "workingdirinit-image",
  "shell-image",
  "shell-image-win",
];
// Tekton's own Deployments, whose programs run on this machine.
const DEPLOYMENTS = ["controller.yaml", "webhook.yaml", "webhook-hpa.yaml", "events.yaml"];

/** Tekton's controller and webhook, which run on this machine. */
export interface Tekton {
  /** Files of Tekton's images that containers in the member need. */
  readonly given: readonly GivenFile[];
  /** Ends both and removes what was installed on the host. */
  stop(): Promise<void>;
}

/** Tekton's own objects, with the port of its webhook wherever a Service is named. */
function manifests(config: string, port: number): string {
  const folders = ["100-namespace", "300-crds", "."].map((folder) => join(config, folder));
  const files = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => file.endsWith(".yaml") && !DEPLOYMENTS.includes(file))
      .map((file) => readFileSync(join(folder, file), "utf8")),
  );
  // The API server resolves no Services here, but for external names.
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: WEBHOOK, namespace: NAMESPACE },
    spec: { type: "ExternalName", externalName: "localhost" },
  };
  const named = new RegExp(`^( +)(service:\\s+name: ${WEBHOOK}\\n)`, "gm");
  return [...files, JSON.stringify(service)].join("\n---\n").replace(named, `$1$2$1  port: ${port}\n`);
}

/** Variables that Tekton's Deployments set. */
function settings(name: "controller" | "webhook", ports: { readonly [variable: string]: number }): NodeJS.ProcessEnv {
  return {
    SYSTEM_NAMESPACE: NAMESPACE,
    POD_NAME: name,
    CONFIG_DEFAULTS_NAME: "config-defaults",
    CONFIG_LOGGING_NAME: "config-logging",
    CONFIG_OBSERVABILITY_NAME: "config-observability",
    CONFIG_FEATURE_FLAGS_NAME: "feature-flags",
    CONFIG_LEADERELECTION_NAME: `config-leader-election-${name}`,
    CONFIG_SPIRE: "config-spire",
    METRICS_DOMAIN: "tekton.dev/pipeline",
    ...Object.fromEntries(Object.entries(ports).map(([variable, port]) => [variable, String(port)])),
  };
}

/** Starts one of its programs with the rights of its own service account. */
async function start(
  host: Cluster,
  folder: { readonly programs: string; readonly files: string },
  name: "controller" | "webhook",
  args: readonly string[],
  ports: { readonly [variable: string]: number },
): Promise<EngineProgram> {
  const token = await kubectl(host, ["create", "token", `tekton-pipelines-${name}`, "-n", NAMESPACE, "--duration=24h"]);
  const kubeconfig = join(folder.files, `tekton-${name}.yaml`);
  const { server, caData } = host;
  writeFileSync(kubeconfig, kubeconfigText({ name: "host", server, caData, user: name, token: token.trim() }), {
    mode: 0o600,
  });
  return startProgram(join(folder.programs, name), ["-disable-ha", ...args], {
    env: { ...process.env, ...settings(name, ports), KUBECONFIG: kubeconfig },
    cwd: folder.files,
    logFile: join(folder.files, `tekton-${name}.log`),
  });
}

/** Installs Tekton on the host from its own manifests, and runs it; `directory` gets its files. */
export async function startTekton(host: Cluster, directory: string): Promise<Tekton> {
  const programs = await ensurePrograms("tekton", (line) => process.stderr.write(`engines: ${line}\n`));
  const port = await freePort();
  const input = manifests(join(programs, "config"), port);
  const folder = { programs, files: directory };
  const images = IMAGE_FLAGS.map((flag) => `-${flag}=${IMAGE}`);
  const ports = async (): Promise<Record<string, number>> => ({
    PROBES_PORT: await freePort(),
    METRICS_PROMETHEUS_PORT: await freePort(),
  });
  const running: EngineProgram[] = [];
  const stop = async (): Promise<void> => {
    try {
      // First, since its admission is asked about what goes.
      await kubectl(host, ["delete", "--ignore-not-found", "--wait=false", "-f", "-"], { input, timeoutMs: 180_000 });
    } finally {
      for (const program of running) program.kill("SIGKILL");
      await Promise.all(running.map(({ ended }) => ended));
    }
  };
  try {
    await kubectl(host, ["apply", "--server-side", "-f", "-"], { input, timeoutMs: 180_000 });
    running.push(await start(host, folder, "webhook", [], { WEBHOOK_PORT: port, ...(await ports()) }));
    running.push(await start(host, folder, "controller", [...images, `-nop-image=${NOP_IMAGE}`], await ports()));
    await eventually(() => answers(host), { timeoutMs: 120_000, intervalMs: 500, what: "Tekton's webhook" });
  } catch (error) {
    await stop();
    throw new Error(running.map((program) => program.output().slice(-3000)).join("\n"), { cause: error });
  }
  return { given: programsInPods(programs, directory), stop };
}

/** Reports whether Tekton's admission defaults an object. */
async function answers(host: Cluster): Promise<boolean> {
  const taskSpec = { steps: [{ name: "step", image: IMAGE, command: ["true"] }] };
  const run = { apiVersion: "tekton.dev/v1", kind: "TaskRun", metadata: { name: "probe" }, spec: { taskSpec } };
  const args = ["create", "-n", "default", "--dry-run=server", "-o", "jsonpath={.spec.timeout}", "-f", "-"];
  return (await kubectl(host, args, { input: JSON.stringify(run) })) !== "";
}

/** The contents of Tekton's images, and the entry point of the affinity assistant's. */
function programsInPods(programs: string, directory: string): readonly GivenFile[] {
  const assistant = join(directory, "assistant.sh");
  writeFileSync(assistant, "#!/bin/sh\nexec /ko-app/nop tekton_run_indefinitely\n");
  chmodSync(assistant, 0o755);
  return [
    { from: join(programs, "entrypoint"), to: "/ko-app/entrypoint" },
    { from: join(programs, "nop"), to: "/ko-app/nop" },
    { from: assistant, to: "/bin/tekton_run_indefinitely" },
  ];
}
