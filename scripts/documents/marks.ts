import { blocksOf, isShell } from "./shell-lines.ts";

/** Blocks of commands of a page, by who runs them. */
export interface Marked {
  /** Run by the tests of pages. */
  readonly run: number;
  /** Run nowhere: the mark says why. */
  readonly elsewhere: number;
  readonly problems: readonly string[];
}

/**
 * Counts the marks of a page's blocks of commands: `run`, or `elsewhere: ` and the reason. A block without a mark is a
 * problem: nothing would notice that its commands do not work.
 */
export function marksOf(document: string, text: string): Marked {
  const blocks = blocksOf(text);
  const shells = blocks.filter(isShell);
  const transcripts = blocks.filter((block) => !isShell(block) && /^ *\$ /m.test(block.text));
  const run = shells.filter(({ mark }) => mark === "run");
  // A backtick would make the line no fence.
  const elsewhere = shells.filter(({ mark }) => /^elsewhere: [^\s`][^`]*$/.test(mark));
  const others = shells.filter((block) => !run.includes(block) && !elsewhere.includes(block));
  return {
    run: run.length,
    elsewhere: elsewhere.length,
    problems: [
      ...others.map(
        ({ line, mark }) =>
          `${document}:${line}: commands ${mark === "" ? "without a mark" : `with the mark "${mark}"`}; write \`\`\`sh run, which ` +
          "has a test run them, or ```sh elsewhere: and why none can",
      ),
      ...transcripts.map(
        ({ line }) =>
          `${document}:${line}: a command beside its output; write a block of \`\`\`sh, and one of the output`,
      ),
    ],
  };
}

/** Returns which pages have blocks with the mark `run` and are not run by a test, and the other way round. */
export function differences(withRuns: readonly string[], tested: readonly string[]): string[] {
  return [
    ...withRuns
      .filter((page) => !tested.includes(page))
      .map((page) => `${page}: no test runs its blocks with the mark run; add it to scripts/documents/tested-pages.ts`),
    ...tested
      .filter((page) => !withRuns.includes(page))
      .map((page) => `${page}: scripts/documents/tested-pages.ts names it, and it has no block with the mark run`),
  ];
}
