import { type ParseArgsOptionsConfig, parseArgs } from "node:util";

type Values<T extends ParseArgsOptionsConfig> = ReturnType<typeof parseArgs<{ options: T }>>["values"];

/** Values of options, and positional arguments. */
interface Called<T extends ParseArgsOptionsConfig> {
  readonly values: Values<T>;
  readonly commands: readonly string[];
}

/** Parses a script's options. Exits with 0 after `--help`, and with 2 for an unknown option. */
export function readOptions<const T extends ParseArgsOptionsConfig>(
  usage: string,
  options: T,
  allowCommands = false,
): Called<T> {
  const help = { help: { type: "boolean", short: "h" } } as const;
  if (parseArgs({ options: help, strict: false }).values.help === true) {
    console.log(usage);
    process.exit(0);
  }
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: allowCommands });
    return { values, commands: positionals };
  } catch (error) {
    refuse(usage, error instanceof Error ? error.message : String(error));
  }
}

/** Prints the problem and the usage, and exits with 2. */
export function refuse(usage: string, message: string): never {
  console.error(`${message}\n\n${usage}`);
  process.exit(2);
}

/** Parses an option's integer. Exits if it is none or out of bounds. */
export function wholeNumber(usage: string, option: string, text: string, from: number, to?: number): number {
  const number = Number(text);
  if (/^\d{1,15}$/.test(text) && number >= from && number <= (to ?? number)) return number;
  const bounds = to === undefined ? `from ${from} on` : `from ${from} to ${to}`;
  return refuse(usage, `--${option} must be a whole number ${bounds}, not "${text}".`);
}
