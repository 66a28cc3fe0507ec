import { posix } from "node:path";

const TABLE = /^\| (file\b[^|\n]*|all of `[^`\n]+`) \| does \|[^\n]*\n\| ---[^\n]*\n((?:\|[^\n]*\n?)+)/gm;
const CODE = /`([^`]+)`/g;
const FILE_OR_FOLDER = /^[\w./-]+$/;

/**
 * Returns what is stale in a document's tables with the columns `file` and `does`: names that no file has and, where the first
 * column is `all of` a folder, what the folder has beside them. `files` has folders, too.
 */
export function fileTableProblems(document: string, text: string, files: readonly string[]): string[] {
  return [...text.matchAll(TABLE)].flatMap(([, heading = "", body = ""]) => {
    const [folder] = heading.startsWith("all of") ? codesOf(heading) : [];
    const rows = body.trim().split("\n");
    const named = rows.flatMap((row) => namesIn(row.split(" | ")[0] ?? "", folder, files));
    const missing = named.filter(({ file }) => file === undefined).map(({ name }) => name);
    const listed = new Set(named.map(({ file }) => file));
    const left =
      folder === undefined ? [] : files.filter((file) => posix.dirname(file) === folder && !listed.has(file));
    return [
      ...missing.map((name) => `${document}: a table names \`${name}\`, which is no file or folder`),
      ...left.map((file) => `${document}: the table of \`${folder}\` lacks \`${posix.basename(file)}\``),
    ];
  });
}

/** A name without a folder stands beside the name before it, or in the folder that the table lists. */
function namesIn(
  cell: string,
  folder: string | undefined,
  files: readonly string[],
): { readonly name: string; readonly file: string | undefined }[] {
  let beside = folder;
  return codesOf(cell)
    .filter((code) => FILE_OR_FOLDER.test(code))
    .map((code) => {
      const name = code.replace(/\/$/, "");
      const whole = beside === undefined || name.includes("/") ? name : posix.join(beside, name);
      const file = files.find((each) => each === whole || each.endsWith(`/${whole}`));
      if (folder === undefined && file !== undefined) beside = posix.dirname(file);
      return { name, file };
    });
}

function codesOf(text: string): string[] {
  return [...text.matchAll(CODE)].map(([, code = ""]) => code);
}
