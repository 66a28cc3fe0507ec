import type { ToldEvent } from "../explain/events.ts";
import type { Journey } from "../explain/pod.ts";
import { troubleText } from "../explain/text.ts";
import { table, textOf } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

export function journeyText(journey: Journey, terminal: Terminal): string {
  const stations = journey.stations.map((station) => ({ ...station, at: station.at && wholeSeconds(station.at) }));
  const start = Date.parse(stations[0]?.at ?? "");
  const rows = stations.flatMap(({ at, clock = "", isUntimed, what, details }) => [
    [
      at ?? (isUntimed === true ? "not on record" : "-"),
      clock,
      at === undefined ? "" : `+${Math.round((Date.parse(at) - start) / 1000)}s`,
      what,
    ],
    ...details.map((detail) => ["", "", "", terminal.paint("dim", `  ${detail}`)]),
  ]);
  return textOf([
    table(["TIME", "CLOCK", "AFTER", `POD ${journey.pod}`], rows, terminal.width, ["AFTER", "CLOCK"]),
    ...journey.troubles.map((trouble) => troubleText(trouble, terminal)),
    journey.notRead && terminal.paint("dim", journey.notRead),
    journey.events.length > 0 && `\n${eventsText(journey.events, terminal)}`,
  ]);
}

/** Returns a time (RFC 3339) without parts of a second: most times of Kubernetes have none. */
function wholeSeconds(at: string): string {
  return at.replace(/\.\d+(?=Z$)/, "");
}

export function eventsText(events: readonly ToldEvent[], terminal: Terminal): string {
  const rows = events.map(({ at, type, reason, message }) => [wholeSeconds(at), type, reason, message]);
  return table(["TIME", "EVENT", "REASON", "MESSAGE"], rows, terminal.width, ["EVENT", "TIME"]);
}
