/** A problem of a subject, in the one shape that all commands and the page draw. */
export interface Trouble {
  readonly what: string;
  /** Since when, as far as it is on record; RFC 3339. */
  readonly since?: string;
  /** Who says so. Absent: it follows from the host's objects. */
  readonly by?: string;
  /** The command, or the step, that puts it right. */
  readonly remedy?: string;
}

/** A reason in CamelCase, and in words. */
export interface Reason {
  readonly reason: string;
  readonly message: string;
}
