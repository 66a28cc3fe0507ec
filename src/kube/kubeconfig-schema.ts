import { z } from "zod";
import { type ExecConfig, execConfigSchema } from "./exec-plugin.ts";

/** `clusters[].cluster`. */
export interface ClusterEntry {
  readonly server: string;
  readonly "certificate-authority"?: string | undefined;
  readonly "certificate-authority-data"?: string | undefined;
  readonly "insecure-skip-tls-verify": boolean;
  readonly "tls-server-name"?: string | undefined;
  readonly "proxy-url"?: string | undefined;
  /** Configuration of plugins, by their names. */
  readonly extensions?: readonly { readonly name: string; readonly extension?: unknown }[] | undefined;
}

/** `users[].user`. */
export interface UserEntry {
  readonly token?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly "client-certificate"?: string | undefined;
  readonly "client-certificate-data"?: string | undefined;
  readonly "client-key"?: string | undefined;
  readonly "client-key-data"?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly as?: string | undefined;
  readonly "as-uid"?: string | undefined;
  readonly "as-groups"?: readonly string[] | undefined;
  readonly exec?: ExecConfig | undefined;
  readonly "auth-provider"?: unknown;
}

/** `contexts[].context`. */
export interface ContextEntry {
  readonly cluster: string;
  readonly user?: string | undefined;
  readonly namespace?: string | undefined;
}

/** The part of a kubeconfig that Legation reads. */
export interface KubeConfig {
  readonly clusters: readonly { readonly name: string; readonly cluster: ClusterEntry }[];
  readonly contexts: readonly { readonly name: string; readonly context: ContextEntry }[];
  readonly users: readonly { readonly name: string; readonly user: UserEntry }[];
  readonly "current-context"?: string | undefined;
}

// kubectl writes null and "" for what is not set.
const text = z
  .string()
  .nullish()
  .transform((value) => (value === null || value === "" ? undefined : value));
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);

const clusterSchema = z.object({
  server: z
    .string({ error: 'write the API server\'s URL, e.g. "https://10.0.0.1:6443"' })
    .regex(/^https?:\/\/[^/]/, { error: 'write a URL that starts with https://, e.g. "https://10.0.0.1:6443"' }),
  "certificate-authority": text,
  "certificate-authority-data": text,
  "insecure-skip-tls-verify": flag,
  "tls-server-name": text,
  "proxy-url": text,
  extensions: z
    .array(z.object({ name: z.string(), extension: z.unknown() }))
    .nullish()
    .transform((value) => value ?? undefined),
});

const userSchema = z.object({
  token: text,
  tokenFile: text,
  "client-certificate": text,
  "client-certificate-data": text,
  "client-key": text,
  "client-key-data": text,
  username: text,
  password: text,
  as: text,
  "as-uid": text,
  "as-groups": z
    .array(z.string())
    .nullish()
    .transform((value) => value ?? undefined),
  exec: execConfigSchema.nullish().transform((value) => value ?? undefined),
  "auth-provider": z.unknown().optional(),
});

const contextSchema = z.object({ cluster: z.string(), user: text, namespace: text });

/** Checks a parsed kubeconfig. */
export const kubeConfigSchema: z.ZodType<KubeConfig> = z.object({
  clusters: z
    .array(z.object({ name: z.string(), cluster: clusterSchema }))
    .nullish()
    .transform((value) => value ?? []),
  contexts: z
    .array(z.object({ name: z.string(), context: contextSchema }))
    .nullish()
    .transform((value) => value ?? []),
  users: z
    .array(z.object({ name: z.string(), user: userSchema.nullish().transform((user) => user ?? userSchema.parse({})) }))
    .nullish()
    .transform((value) => value ?? []),
  "current-context": text,
});
