import { z } from "zod";
import { parseQuantity } from "./quantity.ts";

const UNITS = "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei";

function problemOf(written: unknown): string {
  const text = JSON.stringify(written);
  const value = typeof written === "string" || typeof written === "number" ? parseQuantity(written) : undefined;
  return value === undefined
    ? `${text} is no quantity; write a number, alone or with one of the units ${UNITS}`
    : `${text} is negative; write 0 or more`;
}

const quantity = z
  .union([z.string(), z.number()])
  .refine((text) => (parseQuantity(text) ?? -1) >= 0, { error: ({ input }) => problemOf(input) });

/** Quantities by resource, as authors write them: the API server refuses what is none. */
export const amounts: z.ZodType<Readonly<Record<string, string | number>>> = z.record(z.string(), quantity);

/** The same as text, which is how the API server writes them. */
export function textsOf(list: Readonly<Record<string, string | number>>): Record<string, string> {
  return Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, String(amount)]));
}
