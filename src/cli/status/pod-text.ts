import type { Journey } from "../explain/pod.ts";
import { troubleText } from "../explain/text.ts";
import { table } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { eventsText, wholeSeconds } from "./events-text.ts";

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
  const way = [
    table(["TIME", "CLOCK", "AFTER", `POD ${journey.pod}`], rows, terminal.width, ["AFTER", "CLOCK"]),
    ...journey.troubles.map((trouble) => troubleText(trouble, terminal)),
    ...(journey.notRead === undefined ? [] : [terminal.paint("dim", journey.notRead)]),
  ].join("\n");
  return journey.events.length === 0 ? way : `${way}\n\n${eventsText(journey.events, terminal)}`;
}
