import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

const LINK = /<(a|img|script|link|source)\b[^>]*?\s(?:href|src)="([^"]*)"/g;
const ANCHOR = /\s(?:id|name)="([^"]+)"/g;
const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;

/**
 * Copies the files of the repository to which pages of the built site link, and returns what is wrong with its links: those to
 * nothing, and assets from elsewhere.
 */
export function completeSite(site: string, repository: string): string[] {
  const anchors = new Map<string, ReadonlySet<string>>();
  const anchorsIn = (page: string): ReadonlySet<string> => {
    const found = anchors.get(page) ?? idsOf(readFileSync(join(site, page), "utf8"));
    anchors.set(page, found);
    return found;
  };
  const problemOf = (page: string, tag: string, target: string): string | undefined => {
    if (ELSEWHERE.test(target)) return tag === "a" || target.startsWith("data:") ? undefined : `loads ${target}`;
    const [path = "", anchor = ""] = decodeURI(target).replaceAll("&amp;", "&").split("#");
    const file = path === "" ? page : resolved(page, path);
    if (!existsSync(join(site, file)) && !copyFile(file, { site, repository })) return `${target} leads to no file`;
    if (anchor === "" || !file.endsWith(".html") || anchorsIn(file).has(anchor)) return undefined;
    return `${target} leads to no heading`;
  };
  const pages = globSync("**/*.html", { cwd: site });
  if (pages.length === 0) return [`${site} has no pages`];
  return pages.flatMap((page) => {
    const text = readFileSync(join(site, page), "utf8");
    const links = new Map([...text.matchAll(LINK)].map(([, tag = "", target = ""]) => [target, tag]));
    return [...links].flatMap(([target, tag]) => {
      const problem = problemOf(page, tag, target);
      return problem === undefined ? [] : `${page}: ${problem}`;
    });
  });
}

function idsOf(html: string): ReadonlySet<string> {
  return new Set([...html.matchAll(ANCHOR)].map(([, id = ""]) => id));
}

/** Returns the file to which a path of a page leads, relative to the site. */
function resolved(page: string, path: string): string {
  const file = path.startsWith("/") ? path.slice(1) : posix.join(posix.dirname(page), path);
  if (file === "" || file.endsWith("/")) return `${file}index.html`;
  return file;
}

/** Copies a file of the repository into the site, or makes a list of a folder's files. Reports whether there is one. */
function copyFile(file: string, { site, repository }: { readonly site: string; readonly repository: string }): boolean {
  const source = join(repository, file);
  const target = join(site, file);
  if (existsSync(source) && statSync(source).isFile()) {
    mkdirSync(dirname(target), { recursive: true });
    cpSync(source, target);
    return true;
  }
  const folder = dirname(source);
  if (!file.endsWith("/index.html") || !existsSync(folder)) return false;
  const names = readdirSync(folder, { withFileTypes: true });
  const entries = names.map((entry) => (entry.isDirectory() ? `${entry.name}/index.html` : entry.name));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, listing(posix.dirname(file), entries));
  for (const entry of entries) {
    const inner = posix.join(posix.dirname(file), entry);
    if (!existsSync(join(site, inner))) copyFile(inner, { site, repository });
  }
  return true;
}

function listing(folder: string, entries: readonly string[]): string {
  const items = entries.map((entry) => `<li><a href="${entry}">${entry.replace(/\/index.html$/, "/")}</a></li>`);
  return `<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>${folder}</title><h1>${folder}</h1><ul>${items.join("\n")}</ul></html>\n`;
}
