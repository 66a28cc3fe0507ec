import { z } from "zod";
import { isInBytes } from "./wording.ts";

const SUFFIXES: Readonly<Record<string, number>> = {
  "": 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/;

/** Parses a Kubernetes quantity to its base unit (cores, bytes, pieces). Above 2^53 the last digits are lost. */
function parseQuantity(text: string | number): number | undefined {
  const match = QUANTITY.exec(String(text));
  if (match === null) return undefined;
  const [, digits = "", exponent = "", suffix = ""] = match;
  return Number(digits + exponent) * (SUFFIXES[suffix] ?? 1);
}

/** Amounts by resource name (`cpu` in cores, `memory` in bytes, `pods` and others in pieces). */
export type Amounts = Readonly<Record<string, number>>;

/** Parses a resource list; invalid entries are left out. */
export function parseAmounts(list: Readonly<Record<string, string | number>> | undefined): Record<string, number> {
  const amounts: Record<string, number> = {};
  for (const [name, text] of Object.entries(list ?? {})) {
    const value = parseQuantity(text);
    if (value !== undefined) amounts[name] = value;
  }
  return amounts;
}

/** Adds `factor` times `amounts` to `sum`, in place. */
export function addAmounts(sum: Record<string, number>, amounts: Amounts, factor = 1): void {
  for (const name in amounts) {
    const before = Object.hasOwn(sum, name) ? (sum[name] ?? 0) : 0;
    sum[name] = before + factor * (amounts[name] ?? 0);
  }
}

/** Formats base units as a canonical quantity: cpu in milli if needed, memory in Ki if divisible. */
function formatQuantity(resource: string, value: number): string {
  if (resource === "cpu") {
    const milli = Math.round(value * 1000);
    return milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`;
  }
  const whole = Math.round(value);
  return isInBytes(resource) && whole % 1024 === 0 && whole > 0 ? `${whole / 1024}Ki` : String(whole);
}

const UNITS = ["Gi", "Mi"] as const;

/** Formats base units for people: memory in the largest unit that divides it. */
export function writeQuantity(resource: string, value: number): string {
  const text = formatQuantity(resource, value);
  if (!text.endsWith("Ki")) return text;
  const unit = UNITS.find((suffix) => Math.round(value) % (SUFFIXES[suffix] ?? 1) === 0);
  return unit === undefined ? text : `${Math.round(value) / (SUFFIXES[unit] ?? 1)}${unit}`;
}

export function formatAmounts(amounts: Amounts): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, formatQuantity(name, value)]));
}

/** Tolerates rounding of sums; no request is this small. */
export const ROUNDING = 1e-6;

export function exceeds(amount: number, limit: number): boolean {
  return amount - limit > ROUNDING;
}

export function isWithin(amounts: Amounts, limits: Amounts): boolean {
  return Object.entries(amounts).every(([resource, amount]) => !exceeds(amount, limits[resource] ?? 0));
}

const KNOWN_UNITS = "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei";

function problemOf(written: unknown): string {
  const text = JSON.stringify(written);
  const value = typeof written === "string" || typeof written === "number" ? parseQuantity(written) : undefined;
  return value === undefined
    ? `${text} is no quantity; write a number, alone or with one of the units ${KNOWN_UNITS}`
    : `${text} is negative; write 0 or more`;
}

const quantity = z
  .union([z.string(), z.number()])
  .refine((text) => (parseQuantity(text) ?? -1) >= 0, { error: ({ input }) => problemOf(input) });

/** A schema of quantities by resource, with messages for authors. */
export const amounts: z.ZodType<Readonly<Record<string, string | number>>> = z.record(z.string(), quantity);
