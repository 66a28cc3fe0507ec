const FENCE = /^( *)(```|~~~)([^\n]*)\n([\s\S]*?)^\1\2[ ]*$/gm;
const INLINE_CODE = /(`+)([^`][\s\S]*?)\1/g;
const SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "shell", "console"]);

/** A fenced block of a document. */
export interface Block {
  readonly language: string;
  /** Words after the language. */
  readonly mark: string;
  readonly text: string;
  /** Line of the opening fence, from 1. */
  readonly line: number;
}

/** Returns the fenced blocks of a document, without their indentation. */
export function blocksOf(document: string): Block[] {
  return [...document.matchAll(FENCE)].map(({ index, 1: indent = "", 3: info = "", 4: text = "" }) => {
    const [language = "", ...rest] = info.trim().split(" ");
    return {
      language,
      mark: rest.join(" "),
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      line: document.slice(0, index).split("\n").length,
    };
  });
}

/** Reports whether a block has commands of a shell. */
export function isShell({ language }: Block): boolean {
  return SHELLS.has(language);
}

/** Returns the command lines of shell blocks, without comments and with continued lines joined. */
export function commandLines(text: string): string[] {
  const joined = text.replaceAll(/\\\n\s*/g, " ");
  return joined
    .split("\n")
    .map((line) =>
      line
        .replace(/^\s*\$ /, "")
        .replace(/(?:^|\s)#.*$/, "")
        .trim(),
    )
    .filter((line) => line !== "");
}

/** Returns the command lines of a document: those of its shell blocks, and code within its text. */
export function linesOf(document: string): string[] {
  const blocks = blocksOf(document)
    .filter(isShell)
    .flatMap(({ text }) => commandLines(text));
  const prose = document.replaceAll(FENCE, "");
  const inline = [...prose.matchAll(INLINE_CODE)].map(({ 2: code = "" }) => code.replaceAll(/\s+/g, " ").trim());
  return [...blocks, ...inline];
}
