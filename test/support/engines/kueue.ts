import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";
import { kubeconfigText } from "../clusters/kubeconfig.ts";
import { freePort } from "../clusters/ports.ts";
import type { Cluster } from "../clusters/types.ts";
import { installDefinitions, removeDefinitions } from "../harness/definitions.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { ensurePrograms } from "./programs.ts";
import { startProgram } from "./run.ts";

/** Kueue's MultiKueue controllers, as a process of this machine. */
export interface MultiKueue {
  output(): string;
  stop(): Promise<void>;
}

export const KUEUE_NAMESPACE = "kueue-system";
export const KUEUE_ACCOUNT = "kueue-controller-manager";
const LEGATION = fileURLToPath(new URL("../../../bin/legation", import.meta.url));

/** Installs Kueue's definitions in a cluster, without its webhooks. */
export async function installKueue(cluster: Cluster): Promise<void> {
  await installDefinitions(cluster, join(await ensurePrograms("kueue", () => {}), "crds"));
}

/** Removes the definitions with all their objects. */
export async function removeKueue(cluster: Cluster): Promise<void> {
  await removeDefinitions(cluster, join(await ensurePrograms("kueue", () => {}), "crds"));
}

/** Makes Kueue's account on the host, with the rights that Kueue's own manifests give it. */
export async function createKueueAccount(host: Cluster): Promise<void> {
  const rbac = join(await ensurePrograms("kueue", () => {}), "rbac");
  const labels = { "legation.dev/cluster-profiles": "true" };
  const roles = ROLES.flatMap(([kind, file]) => {
    const { metadata, rules } = role.parse(parse(readFileSync(join(rbac, file), "utf8")));
    // Kustomize would put them there.
    const namespaced = kind === "Role" ? { namespace: KUEUE_NAMESPACE } : {};
    const { name } = metadata;
    const subjects = [{ kind: "ServiceAccount", name: KUEUE_ACCOUNT, namespace: KUEUE_NAMESPACE }];
    const roleRef = { apiGroup: RBAC, kind, name };
    const apiVersion = `${RBAC}/v1`;
    return [
      { apiVersion, kind, metadata: { name, ...namespaced }, rules },
      { apiVersion, kind: `${kind}Binding`, metadata: { name, ...namespaced }, roleRef, subjects },
    ];
  });
  await applyAll(host, [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: KUEUE_NAMESPACE, labels } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: KUEUE_ACCOUNT, namespace: KUEUE_NAMESPACE } },
    ...roles,
  ]);
}

const RBAC = "rbac.authorization.k8s.io";
const ROLES = [
  ["ClusterRole", "role.yaml"],
  ["Role", "manager_secrets_role.yaml"],
  ["Role", "manager_clusterprofiles_role.yaml"],
] as const;
const role = z.looseObject({ metadata: z.looseObject({ name: z.string() }), rules: z.array(z.looseObject({})) });

/** Starts the controllers as Kueue's account, with `legation credential` as the plugin for ClusterProfiles. */
export async function startMultiKueue(host: Cluster): Promise<MultiKueue> {
  const folder = await ensurePrograms("kueue", () => {});
  const directory = mkdtempSync(join(tmpdir(), "legation-kueue-"));
  const token = (await kubectl(host, ["create", "token", KUEUE_ACCOUNT, "-n", KUEUE_NAMESPACE])).trim();
  const kubeconfig = join(directory, "kubeconfig");
  const { server, caData } = host;
  const text = kubeconfigText({ name: "host", server, caData, user: KUEUE_ACCOUNT, token });
  writeFileSync(kubeconfig, text, { mode: 0o600 });
  const address = `127.0.0.1:${await freePort()}`;
  const config = join(directory, "config.yaml");
  writeFileSync(config, JSON.stringify(configuration(address)));
  const program = startProgram(join(folder, "multikueue"), [`--config=${config}`], {
    env: { ...process.env, KUBECONFIG: kubeconfig },
    cwd: directory,
    logFile: join(directory, "log"),
  });
  const stop = async (): Promise<void> => {
    program.kill("SIGTERM");
    await program.ended;
  };
  const started = async (): Promise<boolean> => program.output().includes('"Starting workers"');
  try {
    await eventually(started, { timeoutMs: 60_000, intervalMs: 200, what: "MultiKueue" });
  } catch (error) {
    await stop();
    throw new Error(`${String(error)}:\n${program.output().slice(-4000)}`);
  }
  return { output: program.output, stop };
}

/** A Configuration of Kueue that finds worker clusters by ClusterProfiles: docs/cluster-profiles.md shows it. */
function configuration(healthAddress: string): object {
  return {
    apiVersion: "config.kueue.x-k8s.io/v1beta2",
    kind: "Configuration",
    namespace: KUEUE_NAMESPACE,
    health: { healthProbeBindAddress: healthAddress },
    leaderElection: { leaderElect: false },
    internalCertManagement: { enable: false },
    integrations: { frameworks: ["batch/job"] },
    featureGates: { MultiKueueClusterProfile: true },
    multiKueue: {
      clusterProfile: {
        credentialsProviders: [
          {
            name: "legation",
            execConfig: {
              apiVersion: "client.authentication.k8s.io/v1",
              command: LEGATION,
              args: ["credential"],
              interactiveMode: "Never",
              provideClusterInfo: true,
            },
          },
        ],
      },
    },
  };
}
