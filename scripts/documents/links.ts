import { posix } from "node:path";

const FENCED = /^( *)(```|~~~)[^\n]*\n[\s\S]*?^\1\2[^\n]*$/gm;
const INLINE_CODE = /(`+)([^`][\s\S]*?)\1/g;
const LINK = /\[(?:[^[\]]|\[[^\]]*\])*\]\(\s*([^()\s]+)(?:\s+"[^"]*")?\s*\)/g;
const REFERENCE = /^\[[^\]]+\]:\s+(\S+)/gm;
const HTML_LINK = /\b(?:href|src)="([^"]+)"/g;
const HTML_ANCHOR = /\b(?:id|name)="([^"]+)"/g;
const HEADING = /^#{1,6} +(.+?) *#*$/gm;
const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;
const SOURCE_FILE = /^[\w./-]+\.ts$/;

/**
 * Returns what is wrong with the Markdown documents among the files of the repository: links to files and headings that do not
 * exist, and names of source files that no file has.
 */
export function problemsOf(files: readonly string[], read: (file: string) => string): string[] {
  const known = new Set(files);
  const anchors = new Map<string, ReadonlySet<string>>();
  const anchorsIn = (file: string): ReadonlySet<string> => {
    const found = anchors.get(file) ?? anchorsOf(read(file));
    anchors.set(file, found);
    return found;
  };
  return files
    .filter((file) => file.endsWith(".md"))
    .flatMap((document) => {
      const text = read(document).replaceAll(FENCED, "");
      const links = linksOf(text).flatMap((link) => linkProblem(document, link, { known, anchorsIn }) ?? []);
      const named = [...text.matchAll(INLINE_CODE)].flatMap(([, , code = ""]) => (SOURCE_FILE.test(code) ? code : []));
      const missing = named.filter((code) => !files.some((file) => file === code || file.endsWith(`/${code}`)));
      return [...links, ...missing.map((code) => `${document}: there is no file \`${code}\``)];
    });
}

function linksOf(text: string): string[] {
  const prose = text.replaceAll(INLINE_CODE, "");
  return [LINK, REFERENCE, HTML_LINK]
    .flatMap((pattern) => [...prose.matchAll(pattern)].map(([, target = ""]) => target))
    .filter((target) => !ELSEWHERE.test(target));
}

interface Repository {
  readonly known: ReadonlySet<string>;
  readonly anchorsIn: (file: string) => ReadonlySet<string>;
}

function linkProblem(document: string, link: string, { known, anchorsIn }: Repository): string | undefined {
  const [path = "", anchor] = link.split("#");
  const file = path === "" ? document : posix.normalize(posix.join(posix.dirname(document), decodeURI(path)));
  if (!known.has(file.replace(/\/$/, ""))) return `${document}: ${link} leads to no file`;
  if (anchor === undefined || !file.endsWith(".md") || anchorsIn(file).has(anchor)) return undefined;
  return `${document}: ${link} leads to no heading`;
}

/** Returns the anchors of a document as GitHub makes them. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const prose = text.replaceAll(FENCED, "");
  const anchors = new Set([...prose.matchAll(HTML_ANCHOR)].map(([, anchor = ""]) => anchor));
  const counts = new Map<string, number>();
  for (const [, heading = ""] of prose.matchAll(HEADING)) {
    const slug = slugOf(heading);
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}

function slugOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "")
    .replaceAll(" ", "-");
}
