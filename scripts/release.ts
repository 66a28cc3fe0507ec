import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { lastRelease, RELEASES } from "../test/support/releases/last-release.ts";
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

// Upgrades are tested from this package until the next release, so it is built from scratch.
rmSync(join(root, "dist"), { recursive: true, force: true });
run("npm", "pack", `--pack-destination=${RELEASES}`);
rmSync(join(RELEASES, `legation-${last}.tgz`));

run("git", "add", "--all", changelog, ...naming, RELEASES);
