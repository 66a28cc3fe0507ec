import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Block, blocksOf, isShell } from "../../../scripts/documents/shell-lines.ts";
import { ROOT } from "../legation/cli.ts";

/** The place of a page's commands. */
export interface PageRun {
  /** Path of the page in the repository. */
  readonly page: string;
  /** Folder in which the commands run. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called after each block that has run. */
  readonly after?: (block: Block) => Promise<void>;
  readonly preparation?: Preparation;
  /** Runs only blocks for which it is true. */
  readonly only?: (block: Block) => boolean;
}

/** The state that a page supposes, as shell scripts, and values for its placeholders. */
export interface Preparation {
  /** Runs before the page's first block. */
  readonly first?: string;
  /** Runs before the block that has the key's text. Each key is in exactly one block. */
  readonly before?: Readonly<Record<string, string>>;
  /** Values of placeholders, which stand in the page as whole words. */
  readonly words?: Readonly<Record<string, string>>;
  /** Runs after the last block, or after one that failed. */
  readonly last?: string;
}

/** Runs a page's blocks with the mark `run` in order, and compares what they print with the block of text that follows. */
export async function runPage({
  page,
  directory,
  env,
  after,
  preparation = {},
  only = () => true,
}: PageRun): Promise<number> {
  const { first, before = {}, words = {}, last } = preparation;
  const blocks = blocksOf(readFileSync(join(ROOT, page), "utf8"));
  const runs = blocks.filter((block) => isShell(block) && block.mark === "run" && only(block));
  for (const key of Object.keys(before)) {
    const count = runs.filter(({ text }) => text.includes(key)).length;
    if (count !== 1) throw new Error(`${page}: "${key}" is in ${count} blocks that are run`);
  }
  // Variables are those of another page.
  rmSync(join(directory, ".exported"), { force: true });
  const prepare = async (script: string, where: string): Promise<void> => {
    const { code, output } = await runBlock(script, directory, env);
    if (code !== 0) throw new Error(`${page}: preparation ${where}: exit ${code}:\n${script}\n${output}`);
  };
  let failure: unknown;
  try {
    if (first !== undefined) await prepare(first, "of the page");
    for (const [index, block] of blocks.entries()) {
      if (!runs.includes(block)) continue;
      const where = `${page}:${block.line}`;
      for (const [key, script] of Object.entries(before)) {
        if (block.text.includes(key)) await prepare(script, `of line ${block.line}`);
      }
      const text = withWords(block.text, words);
      const { code, output } = await runBlock(text, directory, env);
      if (code !== 0) throw new Error(`${where}: exit ${code}:\n${text}\n${output}`);
      const next = blocks[index + 1];
      const missing = next?.language === "text" ? missingLine(next.text, output) : undefined;
      if (missing !== undefined) throw new Error(`${where}: does not print "${missing}", but:\n${output}`);
      await after?.(block);
    }
  } catch (error) {
    failure = error;
  }
  // The first failure tells more than those that follow from it.
  if (last !== undefined) await prepare(last, "after the page").catch((error: unknown) => (failure ??= error));
  if (failure !== undefined) throw failure;
  return runs.length;
}

function withWords(text: string, words: Readonly<Record<string, string>>): string {
  return Object.entries(words).reduce(
    (replaced, [word, value]) =>
      replaced.replaceAll(new RegExp(`(?<![\\w.-])${escaped(word)}(?![\\w-])`, "g"), () => value),
    text,
  );
}

/** Returns the first expected line that the output does not have behind those before it; `…` stands for any text. */
export function missingLine(expected: string, output: string): string | undefined {
  const lines = output.split("\n").map(squeezed);
  let from = 0;
  for (const line of expected.split("\n").filter((each) => each.trim() !== "")) {
    const pattern = new RegExp(`^${squeezed(line).split("…").map(escaped).join(".*")}$`);
    const at = lines.findIndex((each, index) => index >= from && pattern.test(each));
    if (at === -1) return line.trim();
    from = at + 1;
  }
  return undefined;
}

function squeezed(line: string): string {
  return line.trim().replaceAll(/\s+/g, " ");
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

// Variables that a block exports hold for the next one, as in a terminal.
const BEFORE = "set -euo pipefail; if [ -f .exported ]; then . ./.exported; fi\n";
const AFTER = "\nexport -p > .exported\n";
// Longer than any wait that a page names.
const TIMEOUT_MS = 400_000;

function runBlock(
  text: string,
  cwd: string,
  env: PageRun["env"],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn("bash", ["-c", `${BEFORE}${text}${AFTER}`], {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: TIMEOUT_MS,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}
