const MODES = ["always", "overflow"] as const;
/** Delegates a pod at once, or after the host's scheduler found no node. */
export type OverflowMode = (typeof MODES)[number];

/** Default time without a node on the host: a scheduler retries within it. */
export const DEFAULT_OVERFLOW_AFTER_SECONDS = 30;

const LONGEST_SECONDS = 24 * 60 * 60;

/** Reports whether a pod that is to be delegated asks the host's scheduler first. Its own mode precedes its namespace's. */
export function isOverflowMode({ mode }: { readonly mode?: OverflowMode }, namespaceMode: string): boolean {
  return (mode ?? namespaceMode) === "overflow";
}

export function readMode(text: string): OverflowMode | undefined {
  return MODES.find((mode) => mode === text);
}

/** Parses a duration such as `30s` or `1h30m`, up to a day, to seconds. */
export function readOverflowAfter(text: string): number | undefined {
  const [whole, hours = 0, minutes = 0, seconds = 0] = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text) ?? [];
  if (whole === undefined || whole === "") return undefined;
  const total = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  return total <= LONGEST_SECONDS ? total : undefined;
}
