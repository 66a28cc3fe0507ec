export interface MemberPart {
  readonly member: string;
  /** Decides the colour of the state. */
  readonly tone: "waiting" | "running" | "ending" | "succeeded" | "failed";
  readonly state: string;
  readonly message?: string | undefined;
  /** Completions that a Job wants of the member, and those that are done. */
  readonly wanted?: number | undefined;
  readonly has?: number | undefined;
}
