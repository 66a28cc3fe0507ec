const KEY = /(?<![\w./-])((?:access\.)?legation\.dev\/[A-Za-z0-9][\w-]*)/g;

// Versions of Legation's APIs are written like keys.
const VERSIONS: ReadonlySet<string> = new Set(["legation.dev/v1alpha1", "access.legation.dev/v1"]);

/** Returns which labels and annotations in a document Legation does not know. */
export function keyProblems(document: string, text: string, known: ReadonlySet<string>): string[] {
  const named = [...text.matchAll(KEY)]
    // `kubectl label ... key-` removes a key.
    .map(([, key = ""]) => key.replace(/-$/, ""))
    .filter((key) => !known.has(key) && !VERSIONS.has(key));
  return [...new Set(named)].map((key) => `${document}: Legation has no key ${key}`);
}
