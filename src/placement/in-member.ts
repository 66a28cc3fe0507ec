import type { Pod } from "../api/kubernetes.ts";
import type { Override } from "../api/overrides.ts";
import type { Amounts } from "../api/quantity.ts";
import { overrideSpec } from "../pods/overrides.ts";
import type { Candidate } from "./candidate.ts";
import { podRequests } from "./requests.ts";

/** A pod as it would be in one member. */
export interface PodInMember {
  readonly pod: Pod;
  readonly requests: Amounts;
}

/** A pod as it would be in each member, with its author's overrides for that one. */
export type InMember = (member: Pick<Candidate, "name" | "labels">) => PodInMember;

/** Reckons once for each member that has overrides. A member that they do not fit does not get the pod in any form. */
export function inMembers(pod: Pod, overrides: readonly Override[] = []): InMember {
  const written = { pod, requests: podRequests(pod) };
  const { spec } = pod;
  if (overrides.length === 0 || spec === undefined) return () => written;
  const known = new Map<string, PodInMember>();
  return (member) => {
    let seen = known.get(member.name);
    if (seen === undefined) {
      const overridden = overrideSpec(spec, overrides, member);
      if ("problem" in overridden || overridden.spec === spec) seen = written;
      else {
        const changed = { ...pod, spec: overridden.spec };
        seen = { pod: changed, requests: podRequests(changed) };
      }
      known.set(member.name, seen);
    }
    return seen;
  };
}
