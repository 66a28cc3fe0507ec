const MODES = ["always", "overflow"] as const;
/** Delegates a pod from the start, or only once the host has no place for it. */
export type OverflowMode = (typeof MODES)[number];

/** How long the host must have found a pod unschedulable, where nobody says: a scheduler tries again within that time. */
export const DEFAULT_OVERFLOW_AFTER_SECONDS = 30;

const LONGEST_SECONDS = 24 * 60 * 60;

/** The mode that the text names; undefined when it names none. */
export function readMode(text: string): OverflowMode | undefined {
  return MODES.find((mode) => mode === text);
}

/** Seconds in a text such as `30s` or `1h30m`, up to a day; undefined when it is none. */
export function readOverflowAfter(text: string): number | undefined {
  const [whole, hours = 0, minutes = 0, seconds = 0] = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text) ?? [];
  if (whole === undefined || whole === "") return undefined;
  const total = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  return total <= LONGEST_SECONDS ? total : undefined;
}
