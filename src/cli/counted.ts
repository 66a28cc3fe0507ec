/** How many there are, for people: `1 pod`, `3 pods`. */
export function counted(number: number, noun = "pod"): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
