import type { KnownDifference, Side } from "./scenario.ts";
import type { Transcript } from "./transcript.ts";

/** Differences of two transcripts. */
export interface Comparison {
  /** Lines that are in one alone and that nothing explains: `-` the plain cluster's, `+` Legation's. */
  readonly unexplained: readonly string[];
  /** Ids of the known differences that were met. */
  readonly known: ReadonlySet<string>;
}

/** Compares call by call, each line as often as it is there. */
export function compare(plain: Transcript, legation: Transcript, known: readonly KnownDifference[]): Comparison {
  const met = new Set<string>();
  const explains = (line: string, side: Side): boolean => {
    const difference = known.find((candidate) => candidate[side]?.test(line) === true);
    if (difference !== undefined) met.add(difference.id);
    return difference !== undefined;
  };
  const unexplained: string[] = [];
  const [first, second] = [callsOf(plain), callsOf(legation)];
  for (const [index, mine] of first.entries()) {
    const theirs = second[index] ?? [];
    const [missing, added] = [without(mine, theirs), without(theirs, mine)];
    const differing = [
      ...missing.filter((line) => !explains(line, "plain")).map((line) => `- ${line}`),
      ...added.filter((line) => !explains(line, "legation")).map((line) => `+ ${line}`),
    ];
    if (without(mine, missing).join("\n") !== without(theirs, added).join("\n")) {
      differing.push("  the lines that are in both are in another order");
    }
    if (differing.length > 0) unexplained.push(mine[0] ?? "", ...differing);
  }
  return { unexplained, known: met };
}

function callsOf(transcript: Transcript): string[][] {
  const calls: string[][] = [];
  for (const line of transcript) {
    if (line.startsWith("$ ")) calls.push([line]);
    else calls.at(-1)?.push(line);
  }
  return calls;
}

/** The lines of `lines` beyond those that are in `others` too. */
function without(lines: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return lines.filter((line) => {
    const index = left.indexOf(line);
    if (index < 0) return true;
    left.splice(index, 1);
    return false;
  });
}
