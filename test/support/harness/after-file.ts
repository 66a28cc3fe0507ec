const cleanUps: (() => Promise<void>)[] = [];

/** Has something done when the file's tests have ended; for use in hooks and tests, where vitest ignores `afterAll`. */
export function afterFile(cleanUp: () => Promise<void>): void {
  cleanUps.push(cleanUp);
}

/** Does what was registered last first; twice is harmless. */
export async function cleanUpFile(): Promise<void> {
  for (let cleanUp = cleanUps.pop(); cleanUp !== undefined; cleanUp = cleanUps.pop()) await cleanUp();
}
