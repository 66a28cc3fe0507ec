import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
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
}

/** Runs a page's blocks with the mark `run` in order, and compares what they print with the block of text that follows. */
export async function runPage({ page, directory, env, after }: PageRun): Promise<number> {
  const blocks = blocksOf(readFileSync(join(ROOT, page), "utf8"));
  let count = 0;
  for (const [index, block] of blocks.entries()) {
    if (!isShell(block) || block.mark !== "run") continue;
    const { code, output } = await runBlock(block.text, directory, env);
    const where = `${page}:${block.line}`;
    if (code !== 0) throw new Error(`${where}: exit ${code}:\n${block.text}\n${output}`);
    const next = blocks[index + 1];
    const missing = next?.language === "text" ? missingLine(next.text, output) : undefined;
    if (missing !== undefined) throw new Error(`${where}: does not print "${missing}", but:\n${output}`);
    await after?.(block);
    count += 1;
  }
  return count;
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

function runBlock(
  text: string,
  cwd: string,
  env: PageRun["env"],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn("bash", ["-c", `${BEFORE}${text}${AFTER}`], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
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
