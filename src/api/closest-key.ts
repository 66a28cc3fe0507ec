// Beyond this a suggestion would be a guess, and comparing costs time.
const MOST_EDITS = 4;

/** Returns the known key nearest to a misspelled one. Undefined if none is near. */
export function closestKey(key: string, known: readonly string[], most: number = MOST_EDITS): string | undefined {
  let closest: string | undefined;
  let fewest = most + 1;
  for (const near of known) {
    if (Math.abs(near.length - key.length) > most) continue;
    const edits = editDistance(key, near);
    if (edits < fewest) {
      fewest = edits;
      closest = near;
    }
  }
  return closest;
}

/** Returns the known name nearest to a misspelled one. Names are short: a third of the letters may differ. */
export function closestName(name: string, known: readonly string[]): string | undefined {
  return closestKey(name, known, Math.ceil(name.length / 3));
}

/** Returns the Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, replaced));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
