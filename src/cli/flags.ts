import { networkInterfaces } from "node:os";
import type { Command } from "commander";
import { z } from "zod";
import { homeAddress } from "../api/home-address.ts";
import { Failure } from "./failure.ts";
import { type Environment, variableOf } from "./flag.ts";

/**
 * Returns the validated input. Flags win over environment variables.
 * commander's own `.env()` is not used: it takes LEGATION_FORCE=false for true.
 */
export function readInput<Output>(
  command: Command,
  args: Readonly<Record<string, unknown>>,
  env: Environment,
  schema: z.ZodType<Output>,
): Output {
  const options = ancestry(command).flatMap((each) => each.options.map((option) => ({ option, owner: each })));
  const values: Record<string, unknown> = {};
  for (const { option, owner } of options) {
    const name = option.attributeName();
    const source = owner.getOptionValueSource(name);
    const variable = env[variableOf(option)];
    if (source !== undefined && source !== "default") values[name] = owner.getOptionValue(name);
    else if (variable !== undefined && variable !== "") values[name] = variable;
  }
  const result = schema.safeParse({ ...values, ...args });
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => {
    const option = options.find(({ option: each }) => each.attributeName() === path[0])?.option;
    if (option === undefined) return path.length === 0 ? message : `<${String(path[0])}>: ${message}`;
    const fromVariable = values[option.attributeName()] === env[variableOf(option)] && env[variableOf(option)];
    return `${fromVariable ? variableOf(option) : (option.long ?? option.flags)}: ${message}`;
  });
  throw new Failure("usage", {
    object: commandPath(command),
    problem: problems.join("; "),
    remedy: `see \`${commandPath(command)} --help\``,
  });
}

/** `legation status pod`: the command as it is typed. */
function commandPath(command: Command): string {
  return ancestry(command)
    .map((each) => each.name())
    .reverse()
    .join(" ");
}

function ancestry(command: Command): Command[] {
  const chain: Command[] = [];
  for (let each: Command | null = command; each !== null; each = each.parent) chain.push(each);
  return chain;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `90`, `90s`, `2m`, `1h` or `500ms` as milliseconds. */
export const duration: z.ZodType<number, string> = z.string().transform((text, context) => {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text);
  const value = match === null ? Number.NaN : Number(match[1]) * (UNITS_MS[match[2] ?? "s"] ?? 1000);
  if (value > 0) return value;
  context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not a duration; write e.g. 90s, 2m or 1h` });
  return z.NEVER;
});

/** A switch, from a flag (true) or from an environment variable. */
export const toggle: z.ZodType<boolean, boolean | string | undefined> = z
  .union([z.boolean(), z.string()])
  .optional()
  .transform((value, context) => {
    if (value === undefined || value === false) return false;
    if (value === true || ["true", "1", "yes"].includes(value.toLowerCase())) return true;
    if (["false", "0", "no"].includes(value.toLowerCase())) return false;
    context.addIssue({
      code: "custom",
      message: `${JSON.stringify(value)} is neither true nor false; write true or false`,
    });
    return z.NEVER;
  });

/** Reports whether the user wants stack traces. Ignores an invalid value, whose own error must not hide this one. */
export function isVerbose(program: Command, env: Environment): boolean {
  return readInput(program, {}, env, z.object({ verbose: toggle.catch(false) })).verbose;
}

/** Returns the wildcard address: `::`, which accepts IPv4 as well, or `0.0.0.0` on a machine without IPv6. */
export function everyAddress(interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces()): string {
  const addresses = Object.values(interfaces).flatMap((each) => each ?? []);
  return addresses.some(({ family }) => family === "IPv6") ? "::" : "0.0.0.0";
}

/** `127.0.0.1:8443`, `[::1]:8443` or `:8443` (every address). */
export const listenAddress: z.ZodType<{ readonly host: string; readonly port: number }, string> = z
  .string()
  .transform((text, context) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
    const port = Number(match?.[3]);
    if (match !== null && port <= 65_535) return { host: match[1] || match[2] || everyAddress(), port };
    context.addIssue({
      code: "custom",
      message: `${JSON.stringify(text)} is not an address to listen on; write e.g. 127.0.0.1:8443 or :8443`,
    });
    return z.NEVER;
  });

/** An API server's address that fits into a pod's in-cluster configuration. */
export const homeApiServer: z.ZodType<string> = z.string().refine((text) => homeAddress(text) !== undefined, {
  error: ({ input }) =>
    `${JSON.stringify(input)} is not https://HOST or https://HOST:PORT without a path; write e.g. https://10.0.0.1:6443`,
});
