import { join } from "node:path";
import { z } from "zod";
import { badCredentials } from "./credentials.ts";
import { inClusterCredentials, SERVICE_ACCOUNT_FOLDER } from "./internal/in-cluster.ts";
import { readDocument } from "./internal/kubeconfig-document.ts";
import { kubeconfigPaths, type LoadOptions } from "./kubeconfig.ts";

/** A context of a kubeconfig with its cluster and user as they are written: fields that this program does not know, too. */
export interface WrittenContext {
  readonly namespace: string | undefined;
  readonly userName: string;
  readonly cluster: Readonly<Record<string, unknown>> & { readonly server: string };
  readonly user: Readonly<Record<string, unknown>>;
}

const entry = z.looseObject({ name: z.string() });
const context = z.looseObject({ cluster: z.string(), user: z.string().nullish(), namespace: z.string().nullish() });
// An invalid entry matters only when it is used, as in `kubeConfigSchema`.
const written = z.looseObject({
  clusters: z
    .array(entry.extend({ cluster: z.looseObject({ server: z.string() }).optional().catch(undefined) }))
    .nullish(),
  users: z.array(entry.extend({ user: z.looseObject({}).optional().catch(undefined) })).nullish(),
  contexts: z.array(entry.extend({ context: context.optional().catch(undefined) })).nullish(),
  "current-context": z.string().nullish(),
});

/**
 * Reads the context that `loadKubeConfig` uses. Names of files are made absolute, so that what is written elsewhere finds them. The
 * pod's service account becomes such a context. Throws KubeError `BadCredentials`.
 */
export function readWrittenContext(options: LoadOptions): WrittenContext {
  const paths = kubeconfigPaths(options);
  if (paths === undefined) return inClusterContext(options);
  const files = paths.map(readWritten);
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

function readWritten(path: string): z.output<typeof written> {
  const parsed = written.safeParse(readDocument(path));
  if (!parsed.success) throw badCredentials(z.prettifyError(parsed.error), path);
  return parsed.data;
}
