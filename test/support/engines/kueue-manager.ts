import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { issueAuthority, issueServing } from "../../../src/certificates/issue.ts";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { installKueue, KUEUE_NAMESPACE, removeKueue } from "./kueue.ts";
import { ensurePrograms } from "./programs.ts";
import { type EngineProgram, startProgram } from "./run.ts";

/** Kueue with its scheduler, its controllers and its webhooks, as a process of this machine. */
export interface KueueManager {
  output(): string;
  /** Ends it without notice. It is started again at once, as its Deployment does whenever it ends. */
  kill(): Promise<void>;
  /** Ends it, and removes what was installed. */
  stop(): Promise<void>;
}

export interface KueueManagerOptions {
  /** Names of integrations, as Kueue's Configuration has them. */
  readonly frameworks: readonly string[];
  /** Further fields of the Configuration. */
  readonly configuration?: object;
}

const RESTARTS_AFTER_MS = 500;
// As in Kueue's own manifests. By default each controller has one worker.
const CONCURRENCY = {
  ...{ "Job.batch": 5, Pod: 5, "Workload.kueue.x-k8s.io": 10 },
  ...{ "LocalQueue.kueue.x-k8s.io": 5, "ClusterQueue.kueue.x-k8s.io": 5 },
};
const CONFIGURATIONS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

const webhook = z.looseObject({
  clientConfig: z.looseObject({ service: z.looseObject({ path: z.string() }).optional() }),
  rules: z.array(z.looseObject({ apiGroups: z.array(z.string()), resources: z.array(z.string()) })).optional(),
});
const configurations = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
  webhooks: z.array(webhook),
});

/** Installs Kueue in a cluster and starts it with the cluster's own rights. Resolves once its webhooks answer. */
export async function startKueue(host: Cluster, options: KueueManagerOptions): Promise<KueueManager> {
  const folder = await ensurePrograms("kueue", (line) => process.stderr.write(`kueue: ${line}\n`));
  await installKueue(host);
  await applyAll(host, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: KUEUE_NAMESPACE } }]);
  const directory = mkdtempSync(join(tmpdir(), "legation-kueue-manager-"));
  const certDir = join(directory, "certs");
  mkdirSync(certDir);
  const at = { now: Date.now(), lifetimeMs: 24 * 3_600_000 };
  const authority = await issueAuthority("kueue", at);
  const { cert, key } = await issueServing(authority, ["127.0.0.1"], at);
  writeFileSync(join(certDir, "tls.crt"), cert);
  writeFileSync(join(certDir, "tls.key"), key);
  const [port, health] = [await freePort(), await freePort()];
  const config = join(directory, "config.yaml");
  const configuration = {
    apiVersion: "config.kueue.x-k8s.io/v1beta2",
    kind: "Configuration",
    namespace: KUEUE_NAMESPACE,
    health: { healthProbeBindAddress: `127.0.0.1:${health}` },
    metrics: { bindAddress: "0" },
    webhook: { port, host: "127.0.0.1", certDir },
    leaderElection: { leaderElect: false },
    internalCertManagement: { enable: false },
    controller: { groupKindConcurrency: CONCURRENCY },
    clientConnection: { qps: 300, burst: 500 },
    integrations: { frameworks: options.frameworks },
    // Kueue serves an aggregated API by a certificate of its own; and pods that are preempted while a check is pending queue again.
    featureGates: { VisibilityOnDemand: false, SkipReassignmentForPodOwnedWorkloads: false },
    ...options.configuration,
  };
  writeFileSync(config, JSON.stringify(configuration));
  const hooks = webhooksAt(port, authority.cert, join(folder, "webhook", "manifests.yaml"), options.frameworks);
  const run = (): EngineProgram =>
    startProgram(join(folder, "kueue"), [`--config=${config}`], {
      env: { ...process.env, KUBECONFIG: host.kubeconfig, METRICS_CERTS: certDir },
      cwd: directory,
      logFile: join(directory, "log"),
    });
  let program = run();
  let isStopping = false;
  const keepRunning = async (): Promise<void> => {
    for (;;) {
      await program.ended;
      await sleep(RESTARTS_AFTER_MS);
      if (isStopping) return;
      program = run();
    }
  };
  const kept = keepRunning();
  const stop = async (): Promise<void> => {
    // Kueue takes its finalizers away.
    await removeKueue(host);
    for (const plural of CONFIGURATIONS) {
      await kubectl(host, ["delete", plural, "--ignore-not-found", ...hooks.map(({ metadata }) => metadata.name)]);
    }
    isStopping = true;
    program.kill("SIGTERM");
    await kept;
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await applyAll(host, hooks);
    const flavor = { apiVersion: "kueue.x-k8s.io/v1beta2", kind: "ResourceFlavor", metadata: { name: "first" } };
    const create = ["create", "--dry-run=server", "-o", "name", "-f", "-"];
    await eventually(() => kubectl(host, create, { input: JSON.stringify(flavor) }), {
      timeoutMs: 120_000,
      intervalMs: 500,
      what: "Kueue's webhooks",
    });
  } catch (error) {
    const said = program.output().slice(-4000);
    await stop();
    throw new Error(`${String(error)}:\n${said}`);
  }
  const kill = async (): Promise<void> => {
    const { ended } = program;
    program.kill("SIGKILL");
    await ended;
  };
  return { output: () => program.output(), kill, stop };
}

/** Returns Kueue's own webhook configurations for a server of this machine, of Kueue's kinds and those that it manages here. */
function webhooksAt(
  port: number,
  authority: string,
  file: string,
  frameworks: readonly string[],
): z.infer<typeof configurations>[] {
  const caBundle = Buffer.from(authority).toString("base64");
  const kinds = frameworks.map((name) => name.slice(name.lastIndexOf("/") + 1).toLowerCase());
  return parseAllDocuments(readFileSync(file, "utf8"))
    .map((document) => configurations.safeParse(document.toJS()))
    .flatMap(({ data }) => (data === undefined ? [] : [data]))
    .map(({ webhooks, metadata, ...rest }) => ({
      apiVersion: "admissionregistration.k8s.io/v1",
      ...rest,
      metadata: { name: `kueue-${metadata.name}` },
      webhooks: webhooks
        .filter(({ rules = [] }) => {
          const [first] = rules;
          const isOwn = first?.apiGroups.includes("kueue.x-k8s.io") ?? false;
          return isOwn || kinds.some((kind) => first?.resources.some((resource) => resource.startsWith(kind)));
        })
        .map(({ clientConfig: { service }, ...hook }) => ({
          ...hook,
          // System namespaces are left alone, as Kueue's own manifests do by a selector.
          namespaceSelector: {
            matchExpressions: [
              {
                key: "kubernetes.io/metadata.name",
                operator: "NotIn",
                values: ["kube-system", KUEUE_NAMESPACE, "legation-system"],
              },
            ],
          },
          clientConfig: { url: `https://127.0.0.1:${port}${service?.path ?? ""}`, caBundle },
        })),
    }));
}
