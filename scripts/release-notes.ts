import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readOptions } from "./options.ts";
import { releaseNotes } from "./release/changelog.ts";
import { ROOT } from "./release/contents.ts";

const USAGE = `Prints the notes of this version's release: its changes, by CHANGELOG.md.

  npm run --silent release-notes -- [--tag TAG]

  --tag  tag of the release; refused if it is not that of package.json's version`;
const { values } = readOptions(USAGE, { tag: { type: "string" } });
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const { version } = z.object({ version: z.string() }).parse(JSON.parse(read("package.json")));
if (values.tag !== undefined && values.tag !== `v${version}`) {
  console.error(`the tag is ${values.tag}, and package.json has the version ${version}, whose tag is v${version}`);
  process.exit(1);
}
// Links of the changelog lead to files of this version.
const home = `https://github.com/legation/legation/blob/v${version}`;
const links = /\]\((?!https?:|#)([^)]+)\)/g;
process.stdout.write(releaseNotes(read("CHANGELOG.md"), version).replaceAll(links, `](${home}/$1)`));
