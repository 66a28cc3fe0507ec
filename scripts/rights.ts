import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { covers, grantedRights } from "../test/support/rights/granted.ts";
import { FORBIDDEN, UNUSED } from "../test/support/rights/unused.ts";
import { RIGHTS_FOLDER, readNoted } from "../test/support/rights/used.ts";

// Runs integration tests (all, or the files that are named) and compares what Legation's accounts may do with what the
// audit logs say they did. With --noted FOLDER: those of a run that has ended, which had the variable LEGATION_RIGHTS.
const { values, positionals } = parseArgs({ options: { noted: { type: "string" } }, allowPositionals: true });
let passed = true;
let folder = values.noted;
if (folder === undefined) {
  folder = mkdtempSync(join(tmpdir(), "legation-rights-"));
  const args = ["vitest", "run", "--project", "integration", ...positionals];
  const run = spawnSync("npx", args, { stdio: "inherit", env: { ...process.env, [RIGHTS_FOLDER]: folder } });
  passed = run.status === 0;
}
const { used, forbidden } = readNoted(folder);
if (values.noted === undefined) rmSync(folder, { recursive: true });
const granted = await grantedRights();
const unused = granted.filter((right) => !used.some((each) => covers(right, each)));
const unexplained = unused.filter((right) => UNUSED[right] === undefined);
const needless = Object.keys(UNUSED).filter((right) => !unused.includes(right));
const expected = Object.keys(FORBIDDEN).map((pattern) => pattern.replace(/\*$/, ""));
const refused = forbidden.filter((right) => !expected.some((start) => right.startsWith(start)));

const show = (title: string, rights: readonly string[]): void => {
  console.log(`${title}: ${rights.length === 0 ? "none" : ""}`);
  for (const right of rights) console.log(`  ${right}`);
};
console.log(`${granted.length} rights are granted, ${granted.length - unused.length} were used`);
show("granted, never used, and without a reason in test/support/rights/unused.ts", unexplained);
show("has a reason, and was used all the same", needless);
show("tried without the right", refused);
process.exitCode = passed && unexplained.length + refused.length === 0 ? 0 : 1;
