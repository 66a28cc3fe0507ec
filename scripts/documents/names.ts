const FENCED = /^( *)(```|~~~)[^\n]*\n[\s\S]*?^\1\2[^\n]*$/gm;
const INLINE_CODE = /(`+)([^`][\s\S]*?)\1/g;
const COMMENT = /(?<=^|\s)(?:\/\*[\s\S]*?\*\/|\/\/[^\n]*)/gm;
const WORD = /[A-Za-z_$][\w$]*/g;
// A name as the sources have it, perhaps one of an object's (`Member.lost`) or with arguments (`decide(observed, now)`).
const NAME = /^#?([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)(?:\([^)]*\))?$/;

/** Pages about the code, where each name in code is of the sources. Other pages name what users see, of any program. */
const ABOUT_THE_CODE =
  /^(?:CONTRIBUTING|docs\/(?:architecture|development|glossary)|docs\/decisions\/.+|src\/.+\/README)\.md$/;

/** Names on these pages that are of Kubernetes, client-go, Node.js or glibc, and that no source of Legation needs. */
export const NAMES_OF_OTHERS: ReadonlySet<string> = new Set([
  "Exec",
  "ExtendedResourceToleration",
  "FailedToSchedule",
  "GetReference",
  "Indexer",
  "MALLOC_MMAP_THRESHOLD_",
  "OnDelete",
  "SelectVictimsOnNode",
  "fitsRequest",
  "isUnschedulable",
  "kube_pod_status_unschedulable",
  "leaderelection",
  "makeInformer",
  "nodeFit",
  "partition",
  "performServerHandshake",
  "resourceversion",
  "terminatingReplicas",
]);

/** Returns the words of sources, without those of comments. */
export function wordsOf(sources: readonly string[]): ReadonlySet<string> {
  return new Set(sources.flatMap((text) => text.replaceAll(COMMENT, "").match(WORD) ?? []));
}

/** Returns which names of functions, types, constants and fields on a page about the code are in no source. */
export function nameProblems(document: string, text: string, words: ReadonlySet<string>): string[] {
  return namesIn(document, text)
    .filter((name) => !words.has(name) && !NAMES_OF_OTHERS.has(name))
    .map((name) => `${document}: no source has the name \`${name}\``);
}

/** Returns the names in code on a page about the code, once each. */
export function namesIn(document: string, text: string): string[] {
  if (!ABOUT_THE_CODE.test(document)) return [];
  const codes = [...text.replaceAll(FENCED, "").matchAll(INLINE_CODE)].map(([, , code = ""]) => code);
  return [...new Set(codes.flatMap((code) => NAME.exec(code)?.[1]?.split(".") ?? []))];
}
