/** Yields headers of Node.js' form, names and values in turn: each name in lower case, its value, and the name as it was spelled. */
export function* headerPairs(
  rawHeaders: readonly string[],
): Generator<readonly [name: string, value: string, spelled: string]> {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const spelled = rawHeaders[index] ?? "";
    yield [spelled.toLowerCase(), rawHeaders[index + 1] ?? "", spelled];
  }
}
