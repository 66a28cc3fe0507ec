import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { parse, YAMLParseError } from "yaml";
import { badCredentials, type ClusterCredentials } from "./credentials.ts";
import type { Environment } from "./environment-proxy.ts";
import { inClusterCredentials, SERVICE_ACCOUNT_FOLDER } from "./in-cluster.ts";
import { type KubeConfig, kubeConfigSchema, problemsOf } from "./kubeconfig-schema.ts";
import { contextCredentials } from "./kubeconfig-user.ts";

export type { ClusterCredentials } from "./credentials.ts";

/** Where to look for the cluster's credentials; what is absent is looked up as kubectl does. */
export interface LoadOptions {
  /** Path of a kubeconfig; before the environment. */
  readonly kubeconfig?: string;
  /** A context other than the current one. */
  readonly context?: string;
  readonly env: Environment;
  /** Folder of the pod's service account; another one in tests. */
  readonly serviceAccountFolder?: string;
  /** Gets what an exec plugin writes to its standard error, for a person to read; without, it is part of the plugin's error. */
  readonly onPluginStderr?: ((text: string) => void) | undefined;
}

/** How a kubeconfig's text is to be trusted. */
export interface TextOptions {
  /** Whether the text may run a program on this machine; also whether it may name files. */
  readonly allowExec: boolean;
  readonly context?: string;
  /** May name a proxy for the way there, as for any program of this machine. */
  readonly env: Environment;
  /** Names the text in errors, e.g. `Secret legation-system/cluster-west`. */
  readonly source?: string;
}

/**
 * Credentials from `kubeconfig`, else `KUBECONFIG` (several files are merged, the first wins), else `~/.kube/config`,
 * else the pod's service account. Throws KubeError `BadCredentials`.
 */
export function loadKubeConfig(options: LoadOptions): ClusterCredentials {
  const { env } = options;
  if (options.kubeconfig !== undefined) return fromFiles([options.kubeconfig], options);
  const listed = (env.KUBECONFIG ?? "").split(delimiter).filter((path) => path !== "");
  // As kubectl: a file of the list may be missing, but not all of them.
  const present = listed.filter((path) => existsSync(path));
  if (present.length > 0) return fromFiles(present, options);
  if (listed.length > 0) {
    throw badCredentials(`no such file; KUBECONFIG must name a kubeconfig that exists`, listed.join(delimiter));
  }
  const home = join(env.HOME ?? homedir(), ".kube", "config");
  if (existsSync(home)) return fromFiles([home], options);
  const folder = options.serviceAccountFolder ?? SERVICE_ACCOUNT_FOLDER;
  const inCluster = inClusterCredentials(env, folder);
  if (inCluster !== undefined) return inCluster;
  throw badCredentials(
    `found none of: --kubeconfig, KUBECONFIG, ${home}, a service account in ${folder}; give --kubeconfig FILE`,
    "kubeconfig",
  );
}

/**
 * Credentials from a kubeconfig's text. Text from a Secret is not trusted to act on this machine: with `allowExec: false`
 * exec plugins and file names are refused, since they would run a program here or send a file of ours to that server.
 */
export function credentialsFromKubeconfigText(text: string, options: TextOptions): ClusterCredentials {
  const source = options.source ?? "kubeconfig";
  const config = parseKubeConfig(text, source);
  const { context, env, allowExec: mayActHere } = options;
  return contextCredentials(config, { context, source, mayActHere, env });
}

function fromFiles(paths: readonly string[], { context, env, onPluginStderr }: LoadOptions): ClusterCredentials {
  const configs = paths.map((path) => {
    let text: string;
    try {
      text = readFileSync(path, "utf8");
    } catch (cause) {
      throw badCredentials(`cannot read it: ${cause instanceof Error ? cause.message : cause}`, path, cause);
    }
    return absolutePaths(parseKubeConfig(text, path), dirname(resolve(path)));
  });
  const merged: KubeConfig = {
    clusters: configs.flatMap((config) => config.clusters),
    contexts: configs.flatMap((config) => config.contexts),
    users: configs.flatMap((config) => config.users),
    "current-context": configs.map((config) => config["current-context"]).find((name) => name !== undefined),
  };
  const source = paths.join(delimiter);
  return contextCredentials(merged, { context, source, mayActHere: true, env, onPluginStderr });
}

function parseKubeConfig(text: string, source: string): KubeConfig {
  let document: unknown;
  try {
    // No warnings either: they quote the text, too.
    document = parse(text, { logLevel: "error" });
  } catch (error) {
    throw badCredentials(`not YAML: see ${placeOf(error)}; it is not shown, since it may hold a secret`, source);
  }
  const parsed = kubeConfigSchema.safeParse(document ?? {});
  if (!parsed.success) throw badCredentials(problemsOf(parsed.error), source);
  return parsed.data;
}

/** Where a text is not YAML, without a word of it. */
function placeOf(error: unknown): string {
  const [start] = (error instanceof YAMLParseError && error.linePos) || [];
  // What has no place is told when the whole has been read.
  return start === undefined ? "its aliases, values that begin with *" : `line ${start.line}, column ${start.col}`;
}

/** File names in a kubeconfig are relative to the folder it is in. */
function absolutePaths(config: KubeConfig, folder: string): KubeConfig {
  const absolute = (path: string | undefined): string | undefined => (path ? resolve(folder, path) : undefined);
  return {
    ...config,
    clusters: config.clusters.map(({ cluster, ...entry }) => {
      if (cluster === undefined) return entry;
      return { ...entry, cluster: { ...cluster, "certificate-authority": absolute(cluster["certificate-authority"]) } };
    }),
    users: config.users.map(({ user, ...entry }) => {
      if (user === undefined) return entry;
      const absoluteUser = {
        ...user,
        tokenFile: absolute(user.tokenFile),
        "client-certificate": absolute(user["client-certificate"]),
        "client-key": absolute(user["client-key"]),
        ...(user.exec === undefined ? {} : { exec: { ...user.exec, command: command(user.exec.command, folder) } }),
      };
      return { ...entry, user: absoluteUser };
    }),
  };
}

/** As kubectl: a plugin's command with a slash is relative to the kubeconfig, a bare name is looked up in PATH. */
function command(name: string, folder: string): string {
  return name.includes("/") ? resolve(folder, name) : name;
}
