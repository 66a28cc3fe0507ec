import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { lastRelease, RELEASES } from "../test/support/releases/last-release.ts";
import { writeArtefacts } from "./release/artefacts.ts";
import { cutChangelog } from "./release/changelog.ts";

// `npm version` runs this once package.json has the new version, and commits what is added here.
const root = join(import.meta.dirname, "..");
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const read = (file: string): string => readFileSync(join(root, file), "utf8");

const { version } = z.object({ version: z.string() }).parse(JSON.parse(read("package.json")));
const { version: last } = lastRelease();
if (version === last) {
  console.error(`package.json has the version of the last release, ${last}: run \`npm version minor\`, say`);
  process.exit(1);
}

const changelog = "CHANGELOG.md";
writeFileSync(join(root, changelog), cutChangelog(read(changelog), version, new Date().toISOString().slice(0, 10)));

const image = `legation:${last}`;
const naming = run("git", "grep", "-l", "--fixed-strings", image).split("\n").filter(Boolean);
for (const file of naming) writeFileSync(join(root, file), read(file).replaceAll(image, `legation:${version}`));

// The chart has the version, too.
run(process.execPath, "scripts/generate.ts");

const folder = join(root, "release");
const names = await writeArtefacts({ folder, onProgress: (line) => console.error(`release: ${line}`) });
console.error(`release: publish ${names.length} files of ${folder}`);

// Upgrades are tested from this package until the next release.
copyFileSync(join(folder, `legation-${version}.tgz`), join(RELEASES, `legation-${version}.tgz`));
rmSync(join(RELEASES, `legation-${last}.tgz`));

run("git", "add", "--all", changelog, ...naming, "charts", RELEASES);
