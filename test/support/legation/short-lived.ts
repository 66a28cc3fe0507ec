/** V8 compiles nothing again to make it faster: it would take longer than most processes of the tests run. */
export const SHORT_LIVED = "--no-opt";

/** Flags of node for a process that lives about as long as this one. */
export function flagsOfThis(): readonly string[] {
  return process.execArgv.includes(SHORT_LIVED) ? [SHORT_LIVED] : [];
}
