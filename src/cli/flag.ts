import { Option } from "commander";

/** Variables of the environment, as the process got them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment variable that stands for a flag: `--webhook-url` is `LEGATION_WEBHOOK_URL`. */
export function variableOf(option: Option): string {
  return `LEGATION_${option.name().replaceAll("-", "_").toUpperCase()}`;
}

/** The flag of a word that may have its value, too: `--labels` of `--labels=a=b`, and `-n` of `-nx`. */
export function flagIn(word: string): string {
  return word.startsWith("--") ? (word.split("=")[0] ?? word) : word.slice(0, 2);
}

/** A flag that is also an environment variable; its help says so. Reading and checking are `readInput`'s. */
export function flag(flags: string, description: string): Option {
  const option = new Option(flags);
  option.description = `${description} [${variableOf(option)}]`;
  return option;
}
