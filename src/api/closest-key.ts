// More edits than this, and the suggestion would be a guess. Long keys are no typing errors, and comparing them costs.
const MOST_EDITS = 4;

/** The known key that `key` was most likely meant to be; undefined when none is near. */
export function closestKey(key: string, known: readonly string[]): string | undefined {
  let closest: string | undefined;
  let fewest = MOST_EDITS + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - key.length) > MOST_EDITS) continue;
    const edits = editDistance(key, candidate);
    if (edits < fewest) {
      fewest = edits;
      closest = candidate;
    }
  }
  return closest;
}

/** Levenshtein distance. */
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
