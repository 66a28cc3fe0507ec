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

/**
 * A Kubernetes quantity as a number in its base unit (cores, bytes, pieces); undefined when it is not one.
 * Numbers above 2^53 lose their last digits, which no comparison of capacities here can notice.
 */
export function parseQuantity(text: string | number): number | undefined {
  const match = QUANTITY.exec(String(text));
  if (match === null) return undefined;
  const [, digits = "", exponent = "", suffix = ""] = match;
  return Number(digits + exponent) * (SUFFIXES[suffix] ?? 1);
}

/** Amounts by resource name (`cpu` in cores, `memory` in bytes, `pods` and others in pieces). */
export type Amounts = Readonly<Record<string, number>>;

/** A resource list as numbers; entries that are not quantities are left out. */
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
  for (const name in amounts) sum[name] = (sum[name] ?? 0) + factor * (amounts[name] ?? 0);
}

/** A number of base units as a canonical quantity: cpu in milli when needed, memory in Ki when it divides. */
function formatQuantity(resource: string, value: number): string {
  if (resource === "cpu") {
    const milli = Math.round(value * 1000);
    return milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`;
  }
  const whole = Math.round(value);
  const bytes = resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-");
  return bytes && whole % 1024 === 0 && whole > 0 ? `${whole / 1024}Ki` : String(whole);
}

const UNITS = ["Gi", "Mi"] as const;

/** A number of base units as a person would write it: memory in the largest unit that divides it. */
export function writeQuantity(resource: string, value: number): string {
  const text = formatQuantity(resource, value);
  if (!text.endsWith("Ki")) return text;
  const unit = UNITS.find((suffix) => Math.round(value) % (SUFFIXES[suffix] ?? 1) === 0);
  return unit === undefined ? text : `${Math.round(value) / (SUFFIXES[unit] ?? 1)}${unit}`;
}

/** Amounts as a resource list. */
export function formatAmounts(amounts: Amounts): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, formatQuantity(name, value)]));
}

/** Sums of fractions of cores drift in the last bits; no request is this small. */
export const ROUNDING = 1e-6;

/** True when an amount, which may be a sum, is more than another. */
export function exceeds(amount: number, limit: number): boolean {
  return amount - limit > ROUNDING;
}

/** True when none of the amounts, which may be sums, is more than there is of its resource. */
export function isWithin(amounts: Amounts, limits: Amounts): boolean {
  return Object.entries(amounts).every(([resource, amount]) => !exceeds(amount, limits[resource] ?? 0));
}
