import { WHOLE_KEY } from "../../api/keys.ts";
import { ageOf } from "../../api/wording.ts";
import { reasonLine, reasonsOf } from "../explain/reasons.ts";
import type { ServiceStatus } from "../explain/service.ts";
import { clusterText, reachesText, serviceSummary, unreachedText } from "../explain/service-words.ts";
import { troubleText } from "../explain/text.ts";
import type { ObjectInMember, WholeObjectStatus } from "../explain/whole-object.ts";
import { conditionText, countColumns } from "../explain/whole-words.ts";
import { hiddenText } from "../shared/hidden.ts";
import { type Columns, objectText, tableOf, textOf } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";

/** Colours of states. Others are red. */
const COLOURS: Readonly<Record<string, "green" | "dim">> = {
  InStep: "green",
  Running: "green",
  Complete: "green",
  Excluded: "dim",
};

export function wholeObjectText(status: WholeObjectStatus, now: number, terminal: Terminal): string {
  const { kind, namespace, name, members, conditions, troubles, hidden, notPlaced } = status;
  const counts = countColumns(members).map(([count, cell]) => [count.toUpperCase(), cell] as const);
  const columns: Columns<ObjectInMember> = {
    CLUSTER: ({ cluster }) => cluster,
    STATE: ({ state }) => terminal.paint(COLOURS[state] ?? "red", state),
    ...(counts.length > 0
      ? Object.fromEntries(counts)
      : {
          GENERATION: ({ generation }) => String(generation ?? "-"),
          HEALTH: ({ health }) => health ?? "-",
        }),
    SINCE: ({ since }) => ageOf(since, now) ?? "-",
    WHY: ({ message }) => message ?? "",
  };
  const optional = ["GENERATION", "SINCE", "HEALTH", ...counts.map(([title]) => title).toReversed()];
  return textOf([
    `${objectText(kind, { namespace, name })}: ${summary(status)}`,
    tableOf(members, columns, terminal.width, optional),
    ...conditions.map(conditionText),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    notPlaced && `${terminal.paint("red", "waits:")} NotPlaced`,
    ...reasonsOf(notPlaced ?? "").map((reason) => `  ${reasonLine(reason)}`),
    ...hiddenText(hidden, terminal),
  ]);
}

function summary({ whole, namedBy, isDeleting, generation, progress, members }: WholeObjectStatus): string {
  if (namedBy !== undefined) return namingText(namedBy);
  if (isDeleting) return "whole, taken back from members";
  if (!whole) return `stays on the host: it has no label ${WHOLE_KEY}, which admission sets for the annotation`;
  if (progress !== undefined && members.length > 0) return `whole: ${progress}`;
  const wanted = members.filter(({ state }) => state !== "Excluded" && state !== "Leaving");
  const inStep = wanted.filter(({ state }) => state === "InStep").length;
  const of = generation === undefined ? "" : `, generation ${generation}`;
  return wanted.length === 0 ? "whole, in no member" : `whole, in step in ${inStep} of ${wanted.length} members${of}`;
}

function namingText(namedBy: NonNullable<WholeObjectStatus["namedBy"]>): string {
  if (namedBy.length === 0) return "no delegated pod names it, so no member has it";
  const where = namedBy.map(({ cluster, pods }) =>
    cluster === undefined ? `${pods} in no member yet` : `${pods} in ${cluster}`,
  );
  return `goes to the members of the pods that name it: ${where.sort().join(", ")}`;
}

export function serviceText(status: ServiceStatus, now: number, terminal: Terminal): string {
  const { namespace, name, clusters, whole, troubles, hidden } = status;
  const columns: Columns<(typeof clusters)[number]> = {
    FROM: ({ cluster }) => clusterText(cluster),
    NETWORK: ({ network }) => network ?? "-",
    READY: ({ ready }) => String(ready),
    "NOT READY": ({ notReady }) => String(notReady),
    REACHES: (one) => reachesText(one) || "-",
    "NOT REACHED": unreachedText,
  };
  return textOf([
    `Service ${namespace}/${name}: ${serviceSummary(status)}`,
    tableOf(clusters, columns, terminal.width, ["NOT READY", "NETWORK", "READY"]),
    ...troubles.map((trouble) => troubleText(trouble, terminal)),
    ...hiddenText(hidden, terminal),
    whole && `\n${wholeObjectText(whole, now, terminal)}`,
  ]);
}
