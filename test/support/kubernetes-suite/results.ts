import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { SideName } from "./sides.ts";

/** The end of one spec on one side. */
export interface SpecResult {
  /** Full text: those of its containers, then its own. */
  readonly spec: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly seconds: number;
  /** First line of the failure. */
  readonly message?: string;
}

const specReport = z.object({
  ContainerHierarchyTexts: z.array(z.string()).nullish(),
  LeafNodeType: z.string(),
  LeafNodeText: z.string().default(""),
  State: z.string(),
  RunTime: z.number(),
  Failure: z.object({ Message: z.string().default("") }).optional(),
});
const reports = z.array(z.object({ SpecReports: z.array(specReport).nullish() }));

const OUTCOMES: Readonly<Record<string, SpecResult["outcome"]>> = { passed: "passed", skipped: "skipped" };
const NOT_ENDED: ReadonlySet<string> = new Set(["pending", "interrupted", "aborted"]);
const NANOSECONDS = 1e9;

/** Parses Ginkgo's JSON report: every spec that came to its end, and none that the run's filters left out. */
export function parseReport(text: string): SpecResult[] {
  return specsIn(text).flatMap((report) => {
    const { State, RunTime, Failure } = report;
    const failure = Failure?.Message ?? "";
    // A spec that skips itself says why.
    if (NOT_ENDED.has(State) || (State === "skipped" && failure === "")) return [];
    const outcome = OUTCOMES[State] ?? "failed";
    const [message] = failure.split("\n").filter((line) => line !== "");
    return [
      {
        spec: textOf(report),
        outcome,
        seconds: Math.round(RunTime / NANOSECONDS),
        ...(message === undefined ? {} : { message }),
      },
    ];
  });
}

/** Returns the full texts of all specs in Ginkgo's JSON report of a dry run. */
export function parseNames(text: string): string[] {
  return specsIn(text).map(textOf);
}

function specsIn(text: string): z.infer<typeof specReport>[] {
  const specs = reports.parse(JSON.parse(text)).flatMap(({ SpecReports }) => SpecReports ?? []);
  return specs.filter(({ LeafNodeType }) => LeafNodeType === "It");
}

function textOf({ ContainerHierarchyTexts, LeafNodeText }: z.infer<typeof specReport>): string {
  return [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(" ");
}

const specResult = z.object({
  spec: z.string(),
  outcome: z.enum(["passed", "failed", "skipped"]),
  seconds: z.number(),
  message: z.string().exactOptional(),
});

/** Results of a side, one line of JSON each, so that a run that is ended goes on where it was. */
export class Results {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
    mkdirSync(directory, { recursive: true });
  }

  /** Returns the newest result of each spec. */
  of(side: SideName): ReadonlyMap<string, SpecResult> {
    const file = this.#file(side);
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    const results = lines.filter((line) => line !== "").map((line) => specResult.parse(JSON.parse(line)));
    return new Map(results.map((result) => [result.spec, result]));
  }

  add(side: SideName, results: readonly SpecResult[]): void {
    for (const result of results) appendFileSync(this.#file(side), `${JSON.stringify(result)}\n`);
  }

  #file(side: SideName): string {
    return join(this.directory, `${side}.jsonl`);
  }
}
