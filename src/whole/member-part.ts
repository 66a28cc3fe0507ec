/** A member's part of a whole object, as the host's object records it. */
export interface MemberPart {
  readonly member: string;
  readonly state: string;
  /** The object's generation that the member has. */
  readonly generation?: number;
  readonly health?: string;
  /** When the member came into this state; RFC 3339. */
  readonly since?: string;
  readonly message?: string;
  /** Numbers of the part, as `succeeded` of a Job: how many, and of how many. The first tells how far the part is. */
  readonly counts?: Readonly<Record<string, readonly [number, of?: number]>>;
}

export type Tone = "waiting" | "running" | "ending" | "succeeded" | "failed";

/** The colours of members that do not have a whole object as it should be, by state. */
export const TONES: Readonly<Record<string, Tone>> = {
  Refused: "failed",
  Contested: "failed",
  NotReachable: "failed",
  Failed: "failed",
  Waiting: "waiting",
  NotStarted: "waiting",
  Suspended: "waiting",
  Leaving: "ending",
  Excluded: "succeeded",
  Complete: "succeeded",
};

/** Formats the numbers of a part: `2 of 6 succeeded, 1 failed`. */
export function countsText(counts: MemberPart["counts"] = {}): string {
  return Object.entries(counts)
    .map(([name, count]) => `${count.join(" of ")} ${name}`)
    .join(", ");
}
