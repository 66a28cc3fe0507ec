import { resolve } from "node:path";
import { readOptions } from "./options.ts";
import { writeArtefacts } from "./release/artefacts.ts";

const USAGE = `Writes the files of a release: the npm package, the chart, the plugin for krew with its manifest, the image as an OCI
layout, the bill of materials, and the checksums of all.

  npm run artefacts -- [--out FOLDER] [--url URL]

  --out  folder, which is made anew (default: release)
  --url  address at which users will find these files (default: the release on GitHub)`;
const { values } = readOptions(USAGE, { out: { type: "string", default: "release" }, url: { type: "string" } });
const folder = resolve(values.out);
const names = await writeArtefacts({
  folder,
  url: values.url,
  onProgress: (line) => console.error(`artefacts: ${line}`),
});
for (const name of names) console.log(`${folder}/${name}`);
