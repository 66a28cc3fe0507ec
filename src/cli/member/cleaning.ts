/** Callbacks that report progress while a member is cleaned. */
export interface CleaningContext {
  readonly signal: AbortSignal;
  readonly removed: (what: string) => void;
  /** Reports a deletion that is waited for, up to a minute. */
  readonly waitsFor: (what: string) => void;
  /** Reports an object that remains, and why. */
  readonly remains: (what: string) => void;
  /** This access is used for the last time: unreadable objects remain, and everything else goes, the access included. */
  readonly isLast?: boolean;
  /** Rejects when somebody else uses the member under this name by now; asked again and again, since cleaning takes minutes. */
  readonly refuseSuccessor?: () => Promise<void>;
}

/** Tells of each as a line about the member. */
export function reportsOf(name: string, report: (line: string) => void): Pick<CleaningContext, "removed" | "waitsFor"> {
  return {
    removed: (what) => report(`${name}: ${what} removed`),
    waitsFor: (what) => report(`${name}: ${what} is being deleted; waiting until it is gone`),
  };
}
