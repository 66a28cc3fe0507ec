import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { badCredentials, type ClusterCredentials } from "./credentials.ts";
import type { Environment } from "./environment-proxy.ts";
import { inClusterCredentials, SERVICE_ACCOUNT_FOLDER } from "./internal/in-cluster.ts";
import { NO_FILE, parseDocument, readDocument } from "./internal/kubeconfig-document.ts";
import { type KubeConfig, kubeConfigSchema, problemsOf } from "./internal/kubeconfig-schema.ts";
import { contextCredentials } from "./internal/kubeconfig-user.ts";

export type { ClusterCredentials } from "./credentials.ts";

/** The sources of credentials. Absent ones are found as kubectl does. */
export interface LoadOptions {
  /** Path of a kubeconfig; wins over the environment. */
  readonly kubeconfig?: string | undefined;
  /** Context to use instead of the current one. */
  readonly context?: string | undefined;
  /** Context to use when `context` is absent and the kubeconfig has one of this name. */
  readonly preferredContext?: string | undefined;
  readonly env: Environment;
  /** Folder of the pod's service account; replaced in tests. */
  readonly serviceAccountFolder?: string;
  /** Receives the standard error of an exec plugin, for the user to read. Without it, it becomes part of the plugin's error. */
  readonly onPluginStderr?: ((text: string) => void) | undefined;
}

export interface TextOptions {
  /** Allows the text to run programs and to name files on this machine. */
  readonly allowExec: boolean;
  readonly context?: string;
  /** Environment of this process, which may name a proxy. */
  readonly env: Environment;
  /** Name of the text in errors, such as `Secret team/cluster-west`. */
  readonly source?: string;
}

/**
 * Loads credentials from `kubeconfig`, else `KUBECONFIG` (several files are merged, the first wins), else `~/.kube/config`,
 * else the pod's service account. Throws KubeError `BadCredentials`.
 */
export function loadKubeConfig(options: LoadOptions): ClusterCredentials {
  const { env } = options;
  const paths = kubeconfigPaths(options);
  if (paths !== undefined) return fromFiles(paths, options);
  const inCluster = inClusterCredentials(env, options.serviceAccountFolder ?? SERVICE_ACCOUNT_FOLDER);
  if (inCluster !== undefined) return inCluster;
  throw badCredentials(
    `there is none at ${homeKubeconfig(env)}, and neither --kubeconfig nor KUBECONFIG names one`,
    "kubeconfig",
  );
}

/** Returns the files of `loadKubeConfig`. Undefined if it uses the pod's service account. Throws KubeError `BadCredentials`. */
export function kubeconfigPaths({
  kubeconfig,
  env,
}: Pick<LoadOptions, "kubeconfig" | "env">): readonly string[] | undefined {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = (env.KUBECONFIG ?? "").split(delimiter).filter((path) => path !== "");
  // As in kubectl, some files of the list may be missing, but not all.
  const present = listed.filter((path) => existsSync(path));
  if (present.length > 0) return present;
  if (listed.length > 0) throw badCredentials(NO_FILE, listed.join(delimiter));
  const home = homeKubeconfig(env);
  return existsSync(home) ? [home] : undefined;
}

function homeKubeconfig(env: Environment): string {
  return join(env.HOME ?? homedir(), ".kube", "config");
}

/**
 * Returns credentials from a kubeconfig's text. With `allowExec: false`, for text from a Secret, it refuses exec plugins and
 * file names: they would run a program here, or send a local file to that server.
 */
export function credentialsFromKubeconfigText(text: string, options: TextOptions): ClusterCredentials {
  const source = options.source ?? "kubeconfig";
  const config = checked(parseDocument(text, source), source);
  const { context, env, allowExec: mayActHere } = options;
  return contextCredentials(config, { context, source, mayActHere, env });
}

function fromFiles(
  paths: readonly string[],
  { context: chosen, preferredContext, env, onPluginStderr }: LoadOptions,
): ClusterCredentials {
  const configs = paths.map((path) => checked(readDocument(path), path));
  const merged: KubeConfig = {
    clusters: configs.flatMap((config) => config.clusters),
    contexts: configs.flatMap((config) => config.contexts),
    users: configs.flatMap((config) => config.users),
    "current-context": configs.map((config) => config["current-context"]).find((name) => name !== undefined),
  };
  const source = paths.join(delimiter);
  const context = chosen ?? merged.contexts.find(({ name }) => name === preferredContext)?.name;
  return contextCredentials(merged, { context, source, mayActHere: true, env, onPluginStderr });
}

function checked(document: unknown, source: string): KubeConfig {
  const parsed = kubeConfigSchema.safeParse(document);
  if (!parsed.success) throw badCredentials(problemsOf(parsed.error), source);
  return parsed.data;
}
