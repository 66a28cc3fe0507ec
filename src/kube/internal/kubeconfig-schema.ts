import { z } from "zod";
import { type ExecConfig, execConfigSchema } from "./exec-plugin.ts";

/** The section `clusters[].cluster`. */
export interface ClusterEntry {
  readonly server: string;
  readonly "certificate-authority"?: string | undefined;
  readonly "certificate-authority-data"?: string | undefined;
  readonly "insecure-skip-tls-verify": boolean;
  readonly "tls-server-name"?: string | undefined;
  readonly "proxy-url"?: string | undefined;
  /** Configuration of plugins, by name. */
  readonly extensions?: readonly { readonly name: string; readonly extension?: unknown }[] | undefined;
}

/** The section `users[].user`. */
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
  readonly "as-user-extra"?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly exec?: ExecConfig | undefined;
  readonly "auth-provider"?: unknown;
}

/** The section `contexts[].context`. */
export interface ContextEntry {
  readonly cluster: string;
  readonly user?: string | undefined;
  readonly namespace?: string | undefined;
}

/** A named entry, or its problem. An invalid entry matters only when it is used. */
export type Named<Name extends string, Entry> = { readonly name: string; readonly problem?: string } & {
  readonly [Key in Name]?: Entry;
};

/** The fields read of a kubeconfig. */
export interface KubeConfig {
  readonly clusters: readonly Named<"cluster", ClusterEntry>[];
  readonly contexts: readonly { readonly name: string; readonly context: ContextEntry }[];
  readonly users: readonly Named<"user", UserEntry>[];
  readonly "current-context"?: string | undefined;
}

// kubectl writes null and "" for unset fields.
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
  "as-user-extra": z
    .record(z.string(), z.array(z.string()))
    .nullish()
    .transform((value) => value ?? undefined),
  exec: execConfigSchema.nullish().transform((value) => value ?? undefined),
  "auth-provider": z.unknown().optional(),
});

const contextSchema = z.object({ cluster: z.string(), user: text, namespace: text });

/** Returns the schema of a list of named entries, each validated by itself. */
function entries<Name extends string, Entry>(
  list: string,
  field: Name,
  schema: z.ZodType<Entry>,
): z.ZodType<readonly Named<Name, Entry>[]> {
  const loose = z.looseObject({ name: z.string() });
  return z
    .array(loose)
    .nullish()
    .transform((found) =>
      (found ?? []).map((entry, index) => {
        const parsed = schema.safeParse(entry[field]);
        const content = parsed.success
          ? { [field]: parsed.data }
          : { problem: problemsOf(parsed.error, [list, index, field]) };
        return { name: entry.name, ...content } as Named<Name, Entry>;
      }),
    );
}

/** Formats all problems on one line: `clusters[0].cluster.server: write ...`. */
export function problemsOf(error: z.ZodError, under: readonly PropertyKey[] = []): string {
  return error.issues.map(({ path, message }) => `${fieldPath([...under, ...path])}: ${message}`).join("; ");
}

/** The schema of a kubeconfig. Invalid cluster and user entries get a problem instead of content. */
export const kubeConfigSchema: z.ZodType<KubeConfig> = z.object({
  clusters: entries("clusters", "cluster", clusterSchema),
  contexts: z
    .array(z.object({ name: z.string(), context: contextSchema }))
    .nullish()
    .transform((value) => value ?? []),
  users: entries(
    "users",
    "user",
    userSchema.nullish().transform((user) => user ?? userSchema.parse({})),
  ),
  "current-context": text,
});

function fieldPath(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
}
