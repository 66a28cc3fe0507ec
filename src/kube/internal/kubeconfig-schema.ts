import { z } from "zod";
import { isJsonObject } from "../json.ts";
import { type ExecConfig, execConfigSchema } from "./exec-plugin.ts";

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

interface ContextEntry {
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

const text = z.string().optional();

const clusterSchema = z.object({
  server: z
    .string({ error: 'write the API server\'s URL, e.g. "https://10.0.0.1:6443"' })
    .regex(/^https?:\/\/[^/]/, { error: 'write a URL that starts with https://, e.g. "https://10.0.0.1:6443"' }),
  "certificate-authority": text,
  "certificate-authority-data": text,
  "insecure-skip-tls-verify": z.boolean().default(false),
  "tls-server-name": text,
  "proxy-url": text,
  extensions: z.array(z.object({ name: z.string(), extension: z.unknown().optional() })).optional(),
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
  "as-groups": z.array(z.string()).optional(),
  "as-user-extra": z.record(z.string(), z.array(z.string())).optional(),
  exec: execConfigSchema.optional(),
  "auth-provider": z.unknown().optional(),
});

const contextSchema = z.object({ cluster: z.string().default(""), user: text, namespace: text });

/** Accepts fields as `schema` does. kubectl writes null and "" for unset ones. */
function withoutUnset<Fields>(schema: z.ZodType<Fields>): z.ZodType<Fields> {
  const isSet = ([, value]: readonly [string, unknown]): boolean => value !== null && value !== "";
  const present = (value: unknown): unknown =>
    isJsonObject(value) ? Object.fromEntries(Object.entries(value).filter(isSet)) : (value ?? {});
  return z.preprocess(present, schema);
}

function entries<Name extends string, Entry>(
  list: string,
  field: Name,
  schema: z.ZodType<Entry>,
): z.ZodType<readonly Named<Name, Entry>[]> {
  const loose = z.looseObject({ name: z.string() });
  const read = (entry: z.output<typeof loose>, index: number): Named<Name, Entry> => {
    const parsed = withoutUnset(schema).safeParse(entry[field]);
    const content = parsed.success
      ? { [field]: parsed.data }
      : { problem: problemsOf(parsed.error, [list, index, field]) };
    return { name: entry.name, ...content } as Named<Name, Entry>;
  };
  return z
    .array(loose)
    .default([])
    .transform((found) => found.map(read));
}

/** Formats all problems on one line: `clusters[0].cluster.server: write ...`. */
export function problemsOf(error: z.ZodError, under: readonly PropertyKey[] = []): string {
  return error.issues.map(({ path, message }) => `${fieldPath([...under, ...path])}: ${message}`).join("; ");
}

/** The schema of a kubeconfig. Invalid cluster and user entries get a problem instead of content. */
export const kubeConfigSchema: z.ZodType<KubeConfig> = withoutUnset(
  z.object({
    clusters: entries("clusters", "cluster", clusterSchema),
    contexts: z.array(z.object({ name: z.string(), context: withoutUnset(contextSchema) })).default([]),
    users: entries("users", "user", userSchema),
    "current-context": text,
  }),
);

function fieldPath(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
}
