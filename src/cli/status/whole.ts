import type { KubeEvent, KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Resource } from "../../kube/resources.ts";
import { objectText, table } from "../shared/output.ts";
import { notOnHost } from "../shared/reading.ts";
import type { Terminal } from "../shared/terminal.ts";
import { lastOf, readEvents, timeOf } from "./events.ts";
import { type Trouble, troubleText } from "./trouble.ts";

/** The lines of a status, from top to bottom. */
export interface WholeLines {
  readonly summary: readonly string[];
  readonly columns: readonly string[];
  /** A row for each member. */
  readonly rows: readonly (readonly string[])[];
  /** Conditions of the status, which the members report. */
  readonly conditions: readonly { readonly what: string; readonly why: string }[];
  readonly troubles: readonly Trouble[];
  /** Why no member has the object, and when that was told. */
  readonly notPlaced: { readonly at?: string; readonly reasons: readonly string[] } | undefined;
}

/** Reads an object and its events, and further facts at the same time. Rejects with `Failure` if there is none, else with KubeError. */
export async function readWhole<T extends KubeObject, F>(
  client: ClusterClient,
  { resource, ref }: { readonly resource: Resource<T>; readonly ref: { namespace?: string; name: string } },
  readFacts: (object: Stored<T>) => Promise<F>,
  signal: AbortSignal,
): Promise<{ readonly object: Stored<T>; readonly told: readonly KubeEvent[]; readonly facts: F }> {
  const object = await client.find(resource, ref, { signal });
  if (object === undefined) throw notOnHost(objectText(resource.kind, ref));
  const [told, facts] = await Promise.all([readEvents(client, object, signal), readFacts(object)]);
  return { object, told, facts };
}

/** Returns the last event of each of the reasons. */
export function toldTroubles(told: readonly KubeEvent[], reasons: readonly string[]): Trouble[] {
  return reasons.flatMap((reason) => {
    const event = lastOf(told, reason);
    return event === undefined ? [] : [{ what: `${reason} (${timeOf(event)}): ${event.message ?? ""}` }];
  });
}

/** Formats the status of a whole object for people. */
export function wholeText(
  { summary, columns, rows, conditions, troubles, notPlaced }: WholeLines,
  terminal: Terminal,
): string {
  return [
    ...summary,
    ...(rows.length === 0 ? [] : [table(columns, rows, terminal.width)]),
    ...conditions.map(({ what, why }) => (why === "" ? what : `${what}: ${why}`)),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    ...(notPlaced === undefined ? [] : waitingLines(notPlaced, terminal)),
  ].join("\n");
}

function waitingLines({ at, reasons }: NonNullable<WholeLines["notPlaced"]>, terminal: Terminal): string[] {
  const title = `${terminal.paint("red", "waits:")} NotPlaced`;
  return [at === undefined ? title : `${title} (${at})`, ...reasons.map((reason) => `  ${reason}`)];
}
