import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../support/legation/cli.ts";

function call(
  script: string,
  ...args: string[]
): { readonly code: number | null; readonly out: string; readonly err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, "scripts", `${script}.ts`), ...args]);
  return { code: status, out: stdout.toString(), err: stderr.toString() };
}

test.each(["artefacts", "bench", "chaos", "clusters", "demo", "generate", "monitoring"])(
  "%s says what it may be called with",
  (script) => {
    const { code, out, err } = call(script, "--help");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`npm run ${script}`);
  },
);

test.each([
  ["bench", ["--only", "clients"], '--only: "clients" is none of'],
  ["bench", ["--pods", "1000,many"], '--pods: "many" is none of'],
  ["bench", ["--only", "scale", "--sizes", "10"], '--sizes: "10" is none of'],
  ["chaos", ["--minutes", "long"], '--minutes must be from 0 to 600, not "long"'],
  ["chaos", ["--runs", "0"], '--runs must be a whole number from 1 on, not "0"'],
  // A seed as the script draws and prints it is valid.
  ["chaos", ["--seed", "1073741823", "--runs", "0"], '--runs must be a whole number from 1 on, not "0"'],
  ["clusters", ["up", "--nodes", "few"], '--nodes must be a whole number from 0 to 1000, not "few"'],
  ["clusters", ["restart"], 'There is no command "restart"'],
  ["demo", ["--kept"], "Unknown option '--kept'"],
  ["monitoring", ["alive"], "Unexpected argument 'alive'"],
] as const)("refuses %s %j before anything starts, with what to write", (script, args, message) => {
  const { code, out, err } = call(script, ...args);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(message);
  expect(err).toContain(`npm run ${script}`);
});
