import { counted as plainlyCounted } from "../../../api/wording.ts";

// Events may lack a time, and members report what they like.
const NO_TIME = "–";

/** Formats a timestamp (RFC 3339) as local time, with the day if that is not today. */
export function localTime(at: string, now: number): string {
  if (Number.isNaN(Date.parse(at))) return NO_TIME;
  const date = new Date(at);
  const time = date.toLocaleTimeString();
  return date.toDateString() === new Date(now).toDateString() ? time : `${date.toLocaleDateString()} ${time}`;
}

/** Formats a timestamp (RFC 3339) with its date and time zone. */
export function zonedTime(at: string, zone?: string): string {
  if (Number.isNaN(Date.parse(at))) return NO_TIME;
  // Sweden writes dates as ISO 8601 does.
  const format = { dateStyle: "short", timeStyle: "long", ...(zone === undefined ? {} : { timeZone: zone }) } as const;
  return new Date(at).toLocaleString("sv-SE", format);
}

/** Formats a count with the reader's separators of digits: `1 pod`, `3,000 pods`. */
export function counted(count: number, noun: string, plural?: string): string {
  return plainlyCounted(count, noun, plural, count.toLocaleString());
}

/** Returns words as the beginning of a sentence. */
export function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Returns a name in two parts. The second, its last word, stays visible where the name is cut; empty if that word is long. */
export function parted(name: string): readonly [string, string] {
  const at = name.search(/[-/][^-/.]{1,11}$/);
  return at <= 0 ? [name, ""] : [name.slice(0, at), name.slice(at)];
}
