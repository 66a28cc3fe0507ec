/** Who is told what cleaning a member does, as it does it, in words for people. */
export interface CleaningContext {
  readonly signal: AbortSignal;
  readonly removed: (what: string) => void;
  /** What is being deleted and waited for, which may take a minute. */
  readonly waitsFor: (what: string) => void;
  /** What is still there, and why. */
  readonly remains: (what: string) => void;
  /** Nobody can come back with this access: what cannot be looked at now remains, and all else goes, the access too. */
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
