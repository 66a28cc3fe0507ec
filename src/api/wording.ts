// Words for quantities, the same in messages, events, the command line and the page.

export function counted(count: number, noun = "pod", plural = `${noun}s`, digits: string = String(count)): string {
  return `${digits} ${count === 1 ? noun : plural}`;
}

/** Formats a count of pods as the subject of a sentence: `1 pod is`, `3 pods on Node west are`. */
export function countedAre(count: number, where = ""): string {
  return `${counted(count)}${where && ` ${where}`} ${count === 1 ? "is" : "are"}`;
}

/** Formats a time span as kubectl formats ages. */
export function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  return days < 8 && hours % 24 > 0 ? `${days}d${hours % 24}h` : `${days}d`;
}

/** Formats the time since a timestamp (RFC 3339). Undefined without one. */
export function ageOf(at: string | undefined, now: number): string | undefined {
  const since = Date.parse(at ?? "");
  return Number.isNaN(since) ? undefined : age(now - since);
}

/** Says that an answer did not come in time: `no answer within 10 s`. */
export function noAnswer(withinMs: number): string {
  return `no answer within ${withinMs / 1000} s`;
}

/** Formats a part of a whole: `12 %`. A small part is never none. */
export function percent(part: number): string {
  return part > 0 && part < 0.01 ? "under 1 %" : `${Math.round(part * 100)} %`;
}

export function isInBytes(resource: string): boolean {
  return resource === "memory" || resource.endsWith("storage") || resource.startsWith("hugepages-");
}

const BYTE_UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** Formats an amount of a resource to a tenth, as manifests write it: `12.5`, `3.2Gi`. */
export function amountText(resource: string, amount: number): string {
  const magnitude = isInBytes(resource) ? Math.floor(Math.log2(Math.max(1, Math.abs(amount))) / 10) : 0;
  const power = Math.min(magnitude, BYTE_UNITS.length - 1);
  return `${Math.round((amount / 1024 ** power) * 10) / 10}${BYTE_UNITS[power]}`;
}
