import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SCRIPTS } from "../../../../src/cli/completion/shells.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "legation-completion-"));
  // Answers with the words that it was asked with, and a candidate that has a description.
  const stub = join(folder, "legation");
  writeFileSync(stub, '#!/bin/sh\nshift\nprintf "asked-%s\\t\\n" "$#"\nprintf "status\\tshow the members\\n"\n');
  chmodSync(stub, 0o755);
  for (const [shell, script] of Object.entries(SCRIPTS)) writeFileSync(join(folder, shell), script);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a script in a shell with the stub in its path. */
function run(shell: string, args: readonly string[], script: string): string {
  const env = { PATH: `${folder}:${process.env.PATH}`, HOME: folder, TERM: "dumb" };
  return execFileSync(shell, [...args, script], { encoding: "utf8", env, timeout: 30_000 });
}

test("bash asks with the words before the cursor, and shows words without descriptions", () => {
  const line = "COMP_WORDS=(legation join we); COMP_CWORD=2";
  const out = run("bash", ["-c"], `source ${folder}/bash; ${line}; _legation; printf '%s\n' "\${COMPREPLY[@]}"`);
  expect(out).toBe("asked-2\nstatus\n");
});

test("zsh asks with the words before the cursor, and shows descriptions", () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a parameter of zsh
  const stubs = "compdef() { :; }; _describe() { print -l -- ${(P)2}; }; _files() { print files; }";
  const out = run(
    "zsh",
    ["-f", "-c"],
    `${stubs}; source ${folder}/zsh; words=(legation join we); CURRENT=3; _legation`,
  );
  expect(out).toBe("asked-2:\nstatus:show the members\n");
});

test("fish asks with the words before the cursor, and shows descriptions", () => {
  const out = run("fish", ["--no-config", "-c"], `source ${folder}/fish; complete -C "legation join st"`);
  expect(out).toBe("status\tshow the members\n");
});
