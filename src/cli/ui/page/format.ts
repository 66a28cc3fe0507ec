const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats an amount of a resource: `12.5`, `3.2 GiB`. */
export function amount(resource: string, value: number): string {
  if (resource !== "memory" && !resource.endsWith("storage")) return String(Math.round(value * 10) / 10);
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, Math.abs(value))) / 10));
  return `${Math.round((value / 1024 ** power) * 10) / 10} ${UNITS[power]}`;
}

/** Formats the time since a timestamp (RFC 3339) as kubectl formats ages. */
export function ageOf(at: string | undefined, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(at ?? "")) / 1000));
  if (Number.isNaN(seconds)) return "–";
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

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
  const [day, month, year, ...rest] = [
    ...new Intl.DateTimeFormat("en-GB", {
      dateStyle: "short",
      timeStyle: "long",
      ...(zone === undefined ? {} : { timeZone: zone }),
    }).formatToParts(new Date(at)),
  ].filter(({ type }) => type !== "literal");
  const [hour, minute, second, name] = rest.map(({ value }) => value);
  return `${year?.value}-${month?.value}-${day?.value} ${hour}:${minute}:${second} ${name}`;
}

/** Formats a count: `1 pod`, `3 pods`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? noun : plural}`;
}
