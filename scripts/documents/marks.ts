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
  const shells = blocksOf(text).filter(isShell);
  const run = shells.filter(({ mark }) => mark === "run");
  const elsewhere = shells.filter(({ mark }) => /^elsewhere: \S/.test(mark));
  const others = shells.filter((block) => !run.includes(block) && !elsewhere.includes(block));
  return {
    run: run.length,
    elsewhere: elsewhere.length,
    problems: others.map(
      ({ line, mark }) =>
        `${document}:${line}: commands ${mark === "" ? "without a mark" : `with the mark "${mark}"`}; write \`\`\`sh run, which ` +
        "has a test run them, or ```sh elsewhere: and why none can",
    ),
  };
}
