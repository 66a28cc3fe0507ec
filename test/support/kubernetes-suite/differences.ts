import { z } from "zod";
import type { SpecResult } from "./results.ts";
import type { ComparedSide } from "./sides.ts";

/** A difference that stays, as docs/conformance.md lists it. */
export interface Listed {
  /** Full text of the spec. */
  readonly spec: string;
  readonly reason: string;
}

/** Differences between both sides, held against the list. */
export interface Verdict {
  /** Specs that ended on both sides. */
  readonly ran: number;
  /** Specs that passed on each side. */
  readonly passed: { readonly plain: number; readonly compared: number };
  /** Differences that the list has. */
  readonly listed: readonly Listed[];
  /** Differences that the list lacks. */
  readonly unlisted: readonly SpecResult[];
  /** Listed specs that passed on the compared side. */
  readonly mended: readonly Listed[];
}

type BySpec = ReadonlyMap<string, SpecResult>;

/** The headings in docs/conformance.md of each side's list. */
const HEADINGS: Readonly<Record<ComparedSide, RegExp>> = {
  delegated: /^### Differences of the suite$/m,
  whole: /^### Differences of whole Jobs$/m,
  devices: /^### Differences of devices$/m,
  door: /^### Differences through the host$/m,
  kueue: /^### Differences of Kueue's specs$/m,
};
const ENTRY = /^- `([^`]+)`: (\S.*)$/;
const entry = z.tuple([z.string(), z.string(), z.string()]);

/** Reads a side's list in docs/conformance.md: items of the form "- `SPEC`: REASON" under its heading, until the next one. */
export function parseListed(page: string, side: ComparedSide): Listed[] {
  const [, after] = page.split(HEADINGS[side]);
  if (after === undefined) throw new Error(`The page has no heading that matches ${HEADINGS[side]}.`);
  const section = after.split(/^#/m)[0] ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("- "))
    .map((line) => {
      const found = entry.safeParse(ENTRY.exec(line)?.slice(0, 3));
      if (!found.success) throw new Error(`Write "- \`SPEC\`: REASON" in one line, not: ${line}`);
      const [, spec, reason] = found.data;
      return { spec, reason };
    });
}

/** Returns the specs that passed on the plain cluster and did not on the other side. */
export function differences(plain: BySpec, other: BySpec): SpecResult[] {
  return [...other.values()].filter(
    ({ spec, outcome }) => outcome !== "passed" && plain.get(spec)?.outcome === "passed",
  );
}

/** Compares the results of the specs that ended on both sides with the list. */
export function compare(plain: BySpec, other: BySpec, list: readonly Listed[]): Verdict {
  const both = [...other.keys()].filter((spec) => plain.has(spec));
  const passedOn = (side: BySpec): number => both.filter((spec) => side.get(spec)?.outcome === "passed").length;
  const found = differences(plain, other);
  const specs = new Set(found.map(({ spec }) => spec));
  const reasons = new Set(list.map(({ spec }) => spec));
  return {
    ran: both.length,
    passed: { plain: passedOn(plain), compared: passedOn(other) },
    listed: list.filter(({ spec }) => specs.has(spec)),
    unlisted: found.filter(({ spec }) => !reasons.has(spec)),
    mended: list.filter(({ spec }) => other.get(spec)?.outcome === "passed"),
  };
}
