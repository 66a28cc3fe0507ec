import {
  badCredentials,
  type Changing,
  type ClusterCredentials,
  FileValue,
  fixed,
  type RequestIdentity,
} from "../credentials.ts";
import { type Environment, environmentProxy, isProxyUrl } from "../environment-proxy.ts";
import { ExecPlugin } from "./exec-plugin.ts";
import type { ClusterEntry, KubeConfig, UserEntry } from "./kubeconfig-schema.ts";

interface ContextOptions {
  readonly context: string | undefined;
  readonly source: string;
  /** Allows the kubeconfig to run programs and to name files on this machine. */
  readonly mayActHere: boolean;
  /** Environment of exec plugins; may name a proxy. */
  readonly env: Environment;
  /** Receives the standard error of an exec plugin. */
  readonly onPluginStderr?: ((text: string) => void) | undefined;
}

/** Returns the credentials of one context of a kubeconfig. Throws KubeError `BadCredentials`. */
export function contextCredentials(config: KubeConfig, options: ContextOptions): ClusterCredentials {
  const { source } = options;
  const bad = (detail: string): Error => badCredentials(detail, source);
  const contextName = options.context ?? config["current-context"];
  if (contextName === undefined) throw bad("current-context is not set; name a context with --context");
  const context = config.contexts.find(({ name }) => name === contextName)?.context;
  if (context === undefined) throw bad(`no context ${contextName}; it has ${names(config.contexts)}`);
  const field = `contexts[${contextName}]`;
  const { cluster } = named(config.clusters, context.cluster, source) ?? {};
  if (cluster === undefined) {
    throw bad(`${field}.cluster: no cluster ${context.cluster}; it has ${names(config.clusters)}`);
  }
  const { user } = named(config.users, context.user, source) ?? {};
  if (context.user !== undefined && user === undefined) {
    throw bad(`${field}.user: no user ${context.user}; it has ${names(config.users)}`);
  }
  const at = { ...options, clusterField: `clusters[${context.cluster}]`, userField: `users[${context.user}]` };
  checkCluster(cluster, at);
  const { "proxy-url": proxyUrl } = cluster;
  const environmentProxyUrl = proxyUrl === undefined ? environmentProxy(cluster.server, options.env) : undefined;
  const tls = tlsValues(cluster, user, at);
  const proof = user === undefined ? undefined : userProof(cluster, user, tls.ca, at);
  return {
    server: cluster.server.replace(/\/+$/, ""),
    source: `${source} (context ${contextName})`,
    namespace: context.namespace,
    clusterName: context.cluster,
    insecureSkipTlsVerify: cluster["insecure-skip-tls-verify"],
    tlsServerName: cluster["tls-server-name"],
    proxyUrl,
    environmentProxyUrl,
    identity: () => {
      const fromUser = proof?.identity() ?? {};
      return fromUser instanceof Promise ? fromUser.then((found) => withTls(found, tls)) : withTls(fromUser, tls);
    },
    refresh: () => {
      proof?.refresh();
      for (const value of [tls.ca, tls.cert, tls.key]) value?.refresh();
    },
  };
}

/** Returns the entry of the name, or throws its problem. Problems of other entries are ignored. */
function named<Entry extends { readonly name: string; readonly problem?: string }>(
  entries: readonly Entry[],
  name: string | undefined,
  source: string,
): Entry | undefined {
  const entry = entries.find((each) => each.name === name);
  if (entry?.problem !== undefined) throw badCredentials(entry.problem, source);
  return entry;
}

type Fields = ContextOptions & { readonly clusterField: string; readonly userField: string };
type TlsValues = Readonly<Record<"ca" | "cert" | "key", Changing | undefined>>;

function names(entries: readonly { readonly name: string }[]): string {
  return entries.length === 0 ? "none" : entries.map(({ name }) => name).join(", ");
}

function withTls(identity: RequestIdentity, tls: TlsValues): RequestIdentity {
  const { cert = tls.cert?.read(), key = tls.key?.read() } = identity;
  return { ...identity, ca: tls.ca?.read(), cert, key };
}

function checkCluster(cluster: ClusterEntry, { source, clusterField }: Fields): void {
  if (!URL.canParse(cluster.server)) {
    throw badCredentials(`${clusterField}.server: not a URL; write e.g. "https://10.0.0.1:6443"`, source);
  }
  const proxy = cluster["proxy-url"];
  if (proxy !== undefined && !isProxyUrl(proxy)) {
    // The message omits the value, which may hold a password.
    throw badCredentials(`${clusterField}.proxy-url: not a proxy; write a URL with http, https or socks5`, source);
  }
  if (
    cluster["insecure-skip-tls-verify"] &&
    (cluster["certificate-authority-data"] ?? cluster["certificate-authority"])
  ) {
    throw badCredentials(
      `${clusterField}: a certificate-authority with insecure-skip-tls-verify; remove one of them`,
      source,
    );
  }
}

function tlsValues(cluster: ClusterEntry, user: UserEntry | undefined, at: Fields): TlsValues {
  const cert = pem(user, "client-certificate", at.userField, at);
  const key = pem(user, "client-key", at.userField, at);
  if ((cert === undefined) !== (key === undefined)) {
    throw badCredentials(`${at.userField}: client-certificate and client-key must be given together`, at.source);
  }
  return { ca: pem(cluster, "certificate-authority", at.clusterField, at), cert, key };
}

/** Returns a PEM from the kubeconfig (base64) or from a file. As in kubectl, the former wins. */
function pem<Name extends "certificate-authority" | "client-certificate" | "client-key">(
  entry: { readonly [Key in Name | `${Name}-data`]?: string | undefined } | undefined,
  name: Name,
  field: string,
  at: Fields,
): Changing | undefined {
  const data = entry?.[`${name}-data`];
  if (data !== undefined) {
    const text = Buffer.from(data, "base64").toString("utf8");
    if (!text.includes("-----BEGIN ")) {
      throw badCredentials(
        `${field}.${name}-data: not base64 of a PEM; write the output of \`base64 -w0 FILE\``,
        at.source,
      );
    }
    return fixed(text);
  }
  const path = entry?.[name];
  return path === undefined ? undefined : file(path, `${field}.${name}`, at);
}

function file(path: string, field: string, at: Fields): Changing {
  if (!at.mayActHere) {
    throw badCredentials(
      `${field}: names a file of this machine, which a stored kubeconfig must not; inline it`,
      at.source,
    );
  }
  return new FileValue(path, field, at.source);
}

/** Returns the user entry's part of the identity: header, impersonation, or a plugin's certificate. */
function userProof(
  cluster: ClusterEntry,
  user: UserEntry,
  ca: Changing | undefined,
  at: Fields,
): { identity(): RequestIdentity | Promise<RequestIdentity>; refresh(): void } | undefined {
  const { source, userField } = at;
  const headers = impersonation(user, at);
  if (user["auth-provider"] !== undefined) {
    throw badCredentials(
      `${userField}.auth-provider: not supported; use an exec plugin, a token or a client certificate`,
      source,
    );
  }
  if (user.exec !== undefined) {
    if (!at.mayActHere) {
      throw badCredentials(
        `${userField}.exec: a stored kubeconfig must not run a program here; write a token or a client certificate`,
        source,
      );
    }
    const plugin = new ExecPlugin(user.exec, {
      cluster: () => clusterInfo(cluster, ca?.read()),
      source,
      env: at.env,
      onStderr: at.onPluginStderr,
    });
    const impersonating = (identity: RequestIdentity): RequestIdentity => ({ ...identity, ...headers });
    return {
      identity: () => {
        const identity = plugin.identity();
        return identity instanceof Promise ? identity.then(impersonating) : impersonating(identity);
      },
      refresh: () => plugin.refresh(),
    };
  }
  // As in kubectl, the token file wins over the token.
  const token = user.tokenFile === undefined ? user.token : file(user.tokenFile, `${userField}.tokenFile`, at);
  if (token !== undefined) {
    const value = typeof token === "string" ? fixed(token.trim()) : token;
    return {
      identity: () => ({ authorization: `Bearer ${value.read()}`, ...headers }),
      refresh: () => value.refresh(),
    };
  }
  if (user.username !== undefined) {
    const basic = Buffer.from(`${user.username}:${user.password ?? ""}`).toString("base64");
    return { identity: () => ({ authorization: `Basic ${basic}`, ...headers }), refresh: () => {} };
  }
  return { identity: () => headers, refresh: () => {} };
}

function impersonation(user: UserEntry, { source, userField }: Fields): Pick<RequestIdentity, "headers"> {
  const { as, "as-uid": uid, "as-groups": groups = [], "as-user-extra": extra = {} } = user;
  const headers = {
    ...(uid === undefined ? {} : { "impersonate-uid": uid }),
    ...(groups.length === 0 ? {} : { "impersonate-group": [...groups] }),
    ...extraHeaders(extra),
  };
  if (as !== undefined) return { headers: { "impersonate-user": as, ...headers } };
  if (Object.keys(headers).length === 0) return {};
  const field = [uid !== undefined && "as-uid", groups.length > 0 && "as-groups", "as-user-extra"].find(Boolean);
  throw badCredentials(`${userField}.${field}: impersonates nobody; write the user as \`as\`, or remove it`, source);
}

/** Encodes extra fields as headers. As in client-go, invalid characters of a header name are percent-encoded. */
function extraHeaders(extra: Readonly<Record<string, readonly string[]>>): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const [key, values] of Object.entries(extra)) {
    const name = encodeURIComponent(key).replaceAll("(", "%28").replaceAll(")", "%29");
    if (values.length > 0) headers[`impersonate-extra-${name}`] = [...values];
  }
  return headers;
}

const EXEC_EXTENSION = "client.authentication.k8s.io/exec";

/** Returns `spec.cluster` of the ExecCredential for a plugin with `provideClusterInfo`. `ca` is a PEM bundle. */
function clusterInfo(cluster: ClusterEntry, ca: string | undefined): Record<string, unknown> {
  return {
    config: cluster.extensions?.find(({ name }) => name === EXEC_EXTENSION)?.extension,
    server: cluster.server,
    "tls-server-name": cluster["tls-server-name"],
    "insecure-skip-tls-verify": cluster["insecure-skip-tls-verify"],
    "certificate-authority-data": ca === undefined ? undefined : Buffer.from(ca).toString("base64"),
    "proxy-url": cluster["proxy-url"],
  };
}
