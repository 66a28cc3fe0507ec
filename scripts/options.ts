import { type ParseArgsOptionsConfig, parseArgs } from "node:util";

type Values<T extends ParseArgsOptionsConfig> = ReturnType<typeof parseArgs<{ options: T }>>["values"];

/** Values of the options, and words that are none. */
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

/** Ends the process with what is wrong with its options, and what they may be. */
export function refuse(usage: string, message: string): never {
  console.error(`${message}\n\n${usage}`);
  process.exit(2);
}

/** The whole number that an option names; ends the process when it is another text, or out of bounds. */
export function wholeNumber(usage: string, option: string, text: string, from: number, to?: number): number {
  const number = Number(text);
  if (/^\d{1,15}$/.test(text) && number >= from && number <= (to ?? number)) return number;
  const bounds = to === undefined ? `from ${from} on` : `from ${from} to ${to}`;
  return refuse(usage, `--${option} must be a whole number ${bounds}, not "${text}".`);
}
