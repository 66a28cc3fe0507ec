import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { cacheDirectory } from "../test/support/clusters/build.ts";
import { realNodesPossible } from "../test/support/clusters/node/possible.ts";
import { compare, differences, parseListed, type Verdict } from "../test/support/kubernetes-suite/differences.ts";
import { ensureSuite, type SuitePrograms } from "../test/support/kubernetes-suite/programs.ts";
import { Results } from "../test/support/kubernetes-suite/results.ts";
import { runSpecs } from "../test/support/kubernetes-suite/run.ts";
import {
  isCompared,
  isOfKueue,
  plainOf,
  SIDES,
  type SideName,
  startSide,
} from "../test/support/kubernetes-suite/sides.ts";
import { allSpecs, selected } from "../test/support/kubernetes-suite/specs.ts";
import { type Suite, suiteOf } from "../test/support/kubernetes-suite/suite.ts";
import { readOptions, refuse, wholeNumber } from "./options.ts";

const USAGE = `Kubernetes' own e2e suite on a plain cluster, on a host whose every pod is delegated, of Jobs on a host whose every Job
runs whole in a member, of claims on a host whose member has the devices, and on a member that is reached through its host. Then Kueue's own suite on a plain cluster with Kueue,
and on a host whose every pod is delegated. Prints the specs that pass on the plain cluster and fail on another, which must be those
that docs/conformance.md lists.

  npm run conformance -- [--focus RE] [--skip RE] [--side plain|delegated|whole|devices|door|kueue] [--minutes N]

  --focus    only specs whose text matches, e.g. '\\[Conformance\\]'
  --skip     none whose text matches
  --side     only one of the six; default: all, one after the other. kueue has its own plain cluster, and runs on both
  --minutes  ends what is under way after so long; the next call goes on from there
  --workers  processes of the suite at a time; default 4
  --again    runs also what has a result: "failed", what has not passed; "all", everything
  --results  folder of results and logs; default: ${join(cacheDirectory(), "conformance")}
  --list     prints the specs that would be run, and runs none

Needs root and what real nodes need. Builds the suite the first time, which takes ten minutes; all specs take hours.
Exits with 1 when a difference is not listed, or a listed spec passes.`;

const PAGE = join(import.meta.dirname, "..", "docs", "conformance.md");
const AGAIN = ["", "failed", "all"];

const { values } = readOptions(USAGE, {
  focus: { type: "string" },
  skip: { type: "string" },
  side: { type: "string" },
  minutes: { type: "string" },
  workers: { type: "string", default: "4" },
  again: { type: "string", default: "" },
  results: { type: "string", default: join(cacheDirectory(), "conformance") },
  list: { type: "boolean", default: false },
});
const sides = SIDES.filter(
  (side) => values.side === undefined || values.side === side || (values.side === "kueue" && isOfKueue(side)),
);
if (sides.length === 0) refuse(USAGE, `--side must be one of ${SIDES.join(", ")}, not "${values.side}".`);
if (!AGAIN.includes(values.again)) refuse(USAGE, `--again must be failed or all, not "${values.again}".`);
const workers = wholeNumber(USAGE, "workers", values.workers, 1, 32);
const minutes = values.minutes === undefined ? undefined : wholeNumber(USAGE, "minutes", values.minutes, 1, 10_000);
const results = new Results(resolve(values.results));
const selection = { ...pattern("focus"), ...pattern("skip") };

function pattern(option: "focus" | "skip"): { readonly [option]?: RegExp } {
  const text = values[option];
  if (text === undefined) return {};
  try {
    return { [option]: new RegExp(text) };
  } catch {
    return refuse(USAGE, `--${option} must be a regular expression, not "${text}".`);
  }
}

function say(line: string): void {
  process.stderr.write(`conformance: ${line}\n`);
}

async function specsOf(name: SideName, suite: Suite): Promise<string[]> {
  return selected(await allSpecs(suite), selection, name);
}

/** Runs specs without a result, and repeats those that differ. */
async function runSide(name: SideName, programs: SuitePrograms): Promise<void> {
  const suite = await suiteOf(name, programs, say);
  const specs = await specsOf(name, suite);
  const had = results.of(name);
  const isDone = (spec: string): boolean =>
    values.again !== "all" && had.has(spec) && (values.again === "" || had.get(spec)?.outcome === "passed");
  const wanted = specs.filter((spec) => !isDone(spec));
  if (wanted.length === 0 || stopping.signal.aborted) return;
  const directory = mkdtempSync(join(tmpdir(), "legation-suite-"));
  try {
    say(`${name}: ${wanted.length} of ${specs.length} specs to run; starting clusters`);
    await using side = await startSide(name, { programs, directory, onProgress: say });
    const begin = performance.now();
    let [done, failed] = [0, 0];
    const run = (some: readonly string[]): Promise<void> =>
      runSpecs(side, some, {
        suite,
        results,
        workers,
        signal: stopping.signal,
        onResults: (ended) => {
          done += ended.length;
          const unfortunate = ended.filter(({ outcome }) => outcome === "failed");
          failed += unfortunate.length;
          for (const { spec, message = "" } of unfortunate) say(`${name}: failed: ${spec}: ${message}`);
          const minutesLeft = (((performance.now() - begin) / 60_000) * (wanted.length - done)) / Math.max(1, done);
          say(`${name}: ${done} of ${wanted.length} done, ${failed} failed, about ${Math.ceil(minutesLeft)} min to go`);
        },
      });
    await run(wanted);
    if (!isCompared(name) || stopping.signal.aborted) return;
    const differing = differences(results.of(plainOf(name)), results.of(name)).map(({ spec }) => spec);
    const twice = wanted.filter((spec) => differing.includes(spec));
    if (twice.length === 0) return;
    say(`${name}: once more, what differs: ${twice.length} specs`);
    await run(twice);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Runs the sides. Reports whether exactly the listed specs differ. */
async function runAll(): Promise<boolean> {
  if (minutes !== undefined) setTimeout(stop, minutes * 60_000).unref();
  for (const side of sides) await runSide(side, programs);
  const page = readFileSync(PAGE, "utf8");
  const verdicts = sides.filter(isCompared).map((side) => {
    const verdict = compare(results.of(plainOf(side)), results.of(side), parseListed(page, side));
    show(side, verdict);
    return verdict;
  });
  return verdicts.every(({ unlisted, mended }) => unlisted.length + mended.length === 0);
}

function show(side: SideName, { ran, passed, listed, unlisted, mended }: Verdict): void {
  console.log(
    `${ran} specs ended on both sides: ${passed.plain} passed on the plain cluster, ${passed.compared} ${side}`,
  );
  console.log(
    `${listed.length} of the ${listed.length + unlisted.length} that passed on the plain cluster only are listed`,
  );
  for (const { spec, message = "" } of unlisted) console.log(`\nnot listed: ${spec}\n  ${message}`);
  for (const { spec } of mended) console.log(`\nlisted, and passes: ${spec}`);
}

const obstacle = realNodesPossible();
if (obstacle !== undefined) {
  say(obstacle);
  process.exit(1);
}
const stopping = new AbortController();
const stop = (): void => stopping.abort();
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
const programs = await ensureSuite(say);
if (values.list) {
  const lists = await Promise.all(sides.map(async (side) => specsOf(side, await suiteOf(side, programs, say))));
  console.log([...new Set(lists.flat())].join("\n"));
} else process.exitCode = (await runAll()) ? 0 : 1;
