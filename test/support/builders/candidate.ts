import type { Candidate } from "../../../src/placement/candidate.ts";

/** A member as placement sees it: open, without labels and room. */
export function candidateNamed(name: string, parts: Partial<Candidate> = {}): Candidate {
  return { name, labels: {}, allocatable: {}, largestNode: {}, used: {}, ...parts };
}
