import { networkInterfaces } from "node:os";
import type { Command, Option } from "commander";
import { z } from "zod";
import { CLUSTER_NAME_MAX } from "../../api/cluster.ts";
import { homeAddress } from "../../api/home-address.ts";
import { MOST_SHARDS } from "../../api/shards.ts";
import type { Environment } from "../../kube/environment-proxy.ts";
import { flag, readInput } from "./command.ts";
import type { ListenAddress } from "./listening.ts";
import { formatOf, type OutputFormat } from "./output.ts";
import type { ClusterChoice } from "./session.ts";

/** Builds the schema of a text that `read` turns into a value. `problem` is told of any other: `is not a duration; write e.g. 90s`. */
export function readText<T>(read: (text: string) => T | undefined, problem: string): z.ZodType<T, string> {
  return z.string().transform((text, context) => {
    const value = read(text);
    if (value !== undefined) return value;
    context.addIssue(`${JSON.stringify(text)} ${problem}`);
    return z.NEVER;
  });
}

/** Returns the function by which a transformation of all input refuses an argument or a flag, by its camelCase name. */
export function refusing(context: z.RefinementCtx): (field: string, message: string) => undefined {
  return (field, message) => void context.addIssue({ code: "custom", path: [field], message });
}

/** How flags depend on each other, by their camelCase names. */
interface FlagRules<Name extends string> {
  /** Flags, each with the one without which it means nothing. */
  readonly needs?: Readonly<Partial<Record<Name, Name>>>;
  /** Flags, each with one that contradicts it. */
  readonly excludes?: Readonly<Partial<Record<Name, Name>>>;
}

/** Returns the check of all input against these rules. A switch that is off and an empty list count as left out. */
export function flagRules<Input extends object>(
  rules: NoInfer<FlagRules<keyof Input & string>>,
): (input: Input, context: z.RefinementCtx) => void {
  const { needs = {}, excludes = {} }: FlagRules<string> = rules;
  return (input, context) => {
    const refuse = refusing(context);
    const given = new Set(Object.entries(input).flatMap(([name, value]) => (isGiven(value) ? [name] : [])));
    for (const [name, other = ""] of Object.entries(needs)) {
      if (given.has(name) && !given.has(other)) refuse(name, `is for ${flagOf(other)}: write both, or leave it out`);
    }
    for (const [name, other = ""] of Object.entries(excludes)) {
      if (!given.has(name) || !given.has(other)) continue;
      refuse(name, `contradicts ${flagOf(other)}: write one of them`);
      refuse(other, `contradicts ${flagOf(name)}`);
    }
  };
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
}

function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Parses `a, b` into its parts. */
export const commaList: z.ZodType<string[], string> = z
  .string()
  .transform((text) => text.split(",").map((each) => each.trim()));

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Parses `90`, `90s`, `2m`, `1h` or `500ms` into milliseconds. */
export const duration: z.ZodType<number, string> = readText((text) => {
  const [, number, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const value = Number(number) * (UNITS_MS[unit] ?? 1000);
  return value > 0 ? value : undefined;
}, "is not a duration; write e.g. 90s, 2m or 1h");

const SWITCHED: Readonly<Record<string, boolean>> = {
  true: true,
  1: true,
  yes: true,
  false: false,
  0: false,
  no: false,
};

/** Parses a switch: a flag (true) or an environment variable. */
export const toggle: z.ZodType<boolean, unknown> = z.preprocess(
  (value) => (typeof value === "string" ? (SWITCHED[value.toLowerCase()] ?? value) : (value ?? false)),
  z.boolean({ error: ({ input }) => `${JSON.stringify(input)} is neither true nor false; write true or false` }),
);

/** Reports whether the user wants stack traces. Ignores an invalid value, whose own error must not hide this one. */
export function isVerbose(program: Command, env: Environment): boolean {
  return readInput(program, {}, env, z.object({ verbose: toggle.catch(false) })).verbose;
}

/** Returns the wildcard address: `::`, which accepts IPv4 as well, or `0.0.0.0` on a machine without IPv6. */
export function everyAddress(interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces()): string {
  const addresses = Object.values(interfaces).flatMap((each) => each ?? []);
  return addresses.some(({ family }) => family === "IPv6") ? "::" : "0.0.0.0";
}

/** Parses `127.0.0.1:8443` or `:8443`. fastify would open a second server for `localhost`, without the limits of the first. */
export const listenAddress: z.ZodType<ListenAddress, string> = readText((text) => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  const host = match[1] || match[2] || everyAddress();
  return { host: host.toLowerCase() === "localhost" ? "127.0.0.1" : host, port };
}, "is not an address to listen on; write e.g. 127.0.0.1:8443 or :8443");

/** The address of a hub, as agents of members reach it. */
export const hubAddress: z.ZodType<string> = z
  .string()
  .refine((text) => /^(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9.-]+):\d{1,5}$/.test(text) && URL.canParse(`https://${text}`), {
    error: ({ input }) => `${JSON.stringify(input)} is not HOST:PORT; write e.g. hub.example.org:8132`,
  });

/** An API server's address that fits into a pod's in-cluster configuration. */
export const homeApiServer: z.ZodType<string> = z.string().refine((text) => homeAddress(text) !== undefined, {
  error: ({ input }) =>
    `${JSON.stringify(input)} is not https://HOST or https://HOST:PORT without a path; write e.g. https://10.0.0.1:6443`,
});

/** Paths of manifests; standard input is `-`. A variable names one. */
export const manifestPaths: z.ZodType<string[], string | string[]> = z.union(
  [z.string().transform((name) => [name]), z.array(z.string())],
  { error: "is required: a file, a folder, or - for standard input" },
);

/** Input of every command: the host cluster and the output format. */
export interface GlobalInput<Format = OutputFormat> extends ClusterChoice {
  readonly output: Format;
  readonly verbose: boolean;
}

/** Returns the schema of a command's own flags together with the global ones. */
export function withGlobals<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodType<z.output<z.ZodObject<Shape>> & GlobalInput> {
  return withFormats(shape, formatOf());
}

/** Returns the schema like `withGlobals`, of a command with formats of its own. */
export function withFormats<Shape extends z.ZodRawShape, Format>(
  shape: Shape,
  format: z.ZodType<Format>,
): z.ZodType<z.output<z.ZodObject<Shape>> & GlobalInput<Format>> {
  const globals = z.object({
    kubeconfig: z.string().optional(),
    context: z.string().optional(),
    output: format,
    verbose: toggle,
  });
  return z.intersection(z.object(shape), globals);
}

/** The name of a Cluster, which is a part of its node's name and a label value. */
export const memberName: z.ZodType<string> = z
  .string()
  .max(CLUSTER_NAME_MAX, { error: `is longer than ${CLUSTER_NAME_MAX} characters` })
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, {
    error: "must be small letters, digits and '-', with a letter or digit first and last; write e.g. west-1",
  });

export const SHARDS_FLAG: Option = flag(
  "--shards <number>",
  `parts that the namespaces are divided into, at most ${MOST_SHARDS}: controllers with the same number share them out; ` +
    "write the same for webhook and controller (default: 1)",
);

export const shards: z.ZodType<number> = z.coerce
  .number()
  .int({ error: "is no whole number" })
  .min(1, { error: "must be 1 or more" })
  .max(MOST_SHARDS, { error: `must be ${MOST_SHARDS} or less` });
