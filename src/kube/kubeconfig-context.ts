import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { badCredentials } from "./credentials.ts";
import { inClusterCredentials, SERVICE_ACCOUNT_FOLDER } from "./internal/in-cluster.ts";
import { kubeconfigPaths, type LoadOptions } from "./kubeconfig.ts";

/** A context of a kubeconfig with its cluster and user as they are written: fields that this program does not know, too. */
export interface WrittenContext {
  readonly namespace: string | undefined;
  readonly userName: string;
  readonly cluster: Readonly<Record<string, unknown>> & { readonly server: string };
  readonly user: Readonly<Record<string, unknown>>;
}

const entry = z.looseObject({ name: z.string() });
const written = z.looseObject({
  clusters: z.array(entry.extend({ cluster: z.looseObject({ server: z.string() }) })).nullish(),
  users: z.array(entry.extend({ user: z.looseObject({}).nullish() })).nullish(),
  contexts: z
    .array(
      entry.extend({
        context: z.looseObject({ cluster: z.string(), user: z.string().nullish(), namespace: z.string().nullish() }),
      }),
    )
    .nullish(),
  "current-context": z.string().nullish(),
});
type Written = z.output<typeof written>;

// Fields of a cluster and of a user that name a file.
const FILE_FIELDS = ["certificate-authority", "client-certificate", "client-key", "tokenFile"];

/**
 * Reads the context that `loadKubeConfig` uses. Names of files are made absolute, so that what is written elsewhere finds them. The
 * pod's service account becomes such a context. Throws KubeError `BadCredentials`.
 */
export function readWrittenContext(options: LoadOptions): WrittenContext {
  const paths = kubeconfigPaths(options);
  if (paths === undefined) return inClusterContext(options);
  const files = paths.map((path) => readFile(path));
  const source = paths.join(", ");
  const contextName =
    options.context ?? files.find((file) => file["current-context"])?.["current-context"] ?? undefined;
  const context = files.flatMap(({ contexts }) => contexts ?? []).find(({ name }) => name === contextName)?.context;
  const cluster = files
    .flatMap(({ clusters }) => clusters ?? [])
    .find(({ name }) => name === context?.cluster)?.cluster;
  if (context === undefined || cluster === undefined) {
    throw badCredentials(`no context ${contextName ?? ""} with a cluster; name one with --context`, source);
  }
  const user = files.flatMap(({ users }) => users ?? []).find(({ name }) => name === context.user)?.user;
  return { namespace: context.namespace ?? undefined, userName: context.user ?? "user", cluster, user: user ?? {} };
}

function inClusterContext({ env, serviceAccountFolder: folder = SERVICE_ACCOUNT_FOLDER }: LoadOptions): WrittenContext {
  const credentials = inClusterCredentials(env, folder);
  if (credentials === undefined) throw badCredentials("found no kubeconfig; give --kubeconfig FILE", "kubeconfig");
  const { server, namespace } = credentials;
  const cluster = { server, "certificate-authority": join(folder, "ca.crt") };
  return { namespace, userName: "service-account", cluster, user: { tokenFile: join(folder, "token") } };
}

function readFile(path: string): Written {
  let document: unknown;
  try {
    document = parse(readFileSync(path, "utf8"), { logLevel: "error" });
  } catch (cause) {
    // The parser's message would quote the text, which may hold a secret.
    throw badCredentials("cannot be read as YAML", path, cause);
  }
  const parsed = written.safeParse(document ?? {});
  if (!parsed.success) throw badCredentials(z.prettifyError(parsed.error), path);
  const folder = dirname(resolve(path));
  return {
    ...parsed.data,
    clusters: parsed.data.clusters?.map((each) => ({ ...each, cluster: absolute(each.cluster, folder) })),
    users: parsed.data.users?.map((each) => ({
      ...each,
      user: withCommand(absolute(each.user ?? {}, folder), folder),
    })),
  };
}

function absolute<Entry extends Readonly<Record<string, unknown>>>(fields: Entry, folder: string): Entry {
  const files = Object.entries(fields).filter(
    ([name, value]) => FILE_FIELDS.includes(name) && typeof value === "string",
  );
  return { ...fields, ...Object.fromEntries(files.map(([name, path]) => [name, resolve(folder, String(path))])) };
}

/** Resolves a plugin's command as kubectl does: relative to the kubeconfig with a slash, from PATH without. */
function withCommand(user: Readonly<Record<string, unknown>>, folder: string): Readonly<Record<string, unknown>> {
  const { success, data: exec } = z.looseObject({ command: z.string() }).safeParse(user.exec);
  if (!success || !exec.command.includes("/")) return user;
  return { ...user, exec: { ...exec, command: resolve(folder, exec.command) } };
}
