/** How many there are, for people: `1 pod`, `3 pods`. */
export function counted(number: number, noun = "pod"): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

const SHOWN = 5;

/** The first few of a list, for a message. */
export function some(items: readonly string[]): string {
  const rest = items.length - SHOWN;
  return items.slice(0, SHOWN).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
