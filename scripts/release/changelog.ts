const UNRELEASED = "## [Unreleased]";

/** Returns the changelog with the unreleased changes under this version. */
export function cutChangelog(text: string, version: string, date: string): string {
  const [before, after] = text.split(`${UNRELEASED}\n`);
  if (before === undefined || after === undefined) throw new Error(`CHANGELOG.md has no line "${UNRELEASED}"`);
  const [unreleased = ""] = after.split(/^## /m, 1);
  if (unreleased.trim() === "") throw new Error("CHANGELOG.md: nothing is unreleased");
  return `${before}${UNRELEASED}\n\n## [${version}] - ${date}\n${after}`;
}

/** Returns the newest version in the changelog. */
export function newestRelease(text: string): string | undefined {
  return /^## \[(\d[^\]]*)\] - \d{4}-\d{2}-\d{2}$/m.exec(text)?.[1];
}

/** Returns the changes of a version, as the notes of its release. Throws if the changelog has none. */
export function releaseNotes(text: string, version: string): string {
  const [, after] = text.split(`\n## [${version}] - `);
  const [entry = ""] = after?.split(/^## /m, 1) ?? [];
  const notes = entry.slice(entry.indexOf("\n")).trim();
  if (notes === "") throw new Error(`CHANGELOG.md has no changes of ${version}`);
  return `${notes}\n`;
}
