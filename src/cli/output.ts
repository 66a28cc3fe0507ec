import { stringify } from "yaml";
import { z } from "zod";
import type { Terminal } from "./terminal.ts";

/** How a command prints its result. */
export const outputFormat: z.ZodType<"text" | "json" | "yaml"> = z
  .enum(["text", "json", "yaml"], {
    error: (issue) => `${JSON.stringify(issue.input)} is not a format; write json or yaml`,
  })
  .default("text");

/** A result, for people and for scripts. */
export interface Outcome {
  /** Lines for a person. */
  readonly text: string;
  /** The same for `-o json|yaml`. */
  readonly document: unknown;
}

/** Prints one result in the wanted format. */
export function printOutcome(terminal: Terminal, format: "text" | "json" | "yaml", outcome: Outcome): void {
  if (format === "json") terminal.print(JSON.stringify(outcome.document, null, 2));
  else if (format === "yaml") terminal.write(stringify(outcome.document));
  else if (outcome.text !== "") terminal.print(outcome.text);
}
