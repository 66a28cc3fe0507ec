const cleanUps: (() => Promise<void>)[] = [];

/** Registers work for the time when the file's tests have ended; for hooks and tests, where vitest ignores `afterAll`. */
export function afterFile(cleanUp: () => Promise<void>): void {
  cleanUps.push(cleanUp);
}

/** Runs the registered work, the last first, also after a failure, and then rejects with all failures. A second call does nothing. */
export async function cleanUpFile(): Promise<void> {
  const failures: unknown[] = [];
  for (let cleanUp = cleanUps.pop(); cleanUp !== undefined; cleanUp = cleanUps.pop()) {
    await cleanUp().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw new AggregateError(failures, `not cleaned up: ${failures.map(String).join("; ")}`);
}
