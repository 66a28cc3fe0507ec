const cleanUps: (() => Promise<void>)[] = [];

/** Has something done when the file's tests have ended; for use in hooks and tests, where vitest ignores `afterAll`. */
export function afterFile(cleanUp: () => Promise<void>): void {
  cleanUps.push(cleanUp);
}

/** Does what was registered last first, all of it whatever fails; twice is harmless. Rejects with what has failed. */
export async function cleanUpFile(): Promise<void> {
  const failures: unknown[] = [];
  for (let cleanUp = cleanUps.pop(); cleanUp !== undefined; cleanUp = cleanUps.pop()) {
    await cleanUp().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw new AggregateError(failures, `not cleaned up: ${failures.map(String).join("; ")}`);
}
