import type { Pod } from "../api/kubernetes.ts";
import type { Override } from "../api/overrides.ts";
import type { Amounts } from "../api/quantity.ts";
import { type Merged, withoutMerged } from "../pods/host-admission.ts";
import { overrideSpec } from "../pods/overrides.ts";
import { specInMember } from "../pods/virtual-node-terms.ts";
import type { Candidate } from "./candidate.ts";
import { podRequests, type RequestMutation } from "./requests.ts";

export interface PodInMember {
  readonly pod: Pod;
  readonly requests: Amounts;
  /** The requests that the member's admission makes of the pod's. Absent: none are known. */
  readonly mutation?: RequestMutation;
  readonly refusal?: string;
  readonly weight: number;
}

/** Applies overrides and mutations, and leaves out terms about virtual nodes and what the host's admission merged. */
export type InMember = (member: Pick<Candidate, "name" | "labels" | "nodesHave">) => PodInMember;

/** Computes the pod once per member. */
export function inMembers(
  pod: Pod,
  overrides: readonly Override[] = [],
  merged?: Merged,
  mutationIn?: (member: string) => RequestMutation | undefined,
): InMember {
  const written = { pod, requests: podRequests(pod), weight: 0 };
  const { spec } = pod;
  if (spec === undefined) return () => written;
  const known = new Map<string, PodInMember>();
  return (member) => {
    let seen = known.get(member.name);
    if (seen === undefined) {
      const overridden = overrideSpec(spec, overrides, member);
      const own = withoutMerged("problem" in overridden ? spec : overridden.spec, merged);
      const { spec: there, ...said } = specInMember(member, own);
      if (there === spec) seen = { ...written, ...said };
      else {
        const changed = { ...pod, spec: there };
        seen = { pod: changed, requests: podRequests(changed), ...said };
      }
      const mutation = mutationIn?.(member.name);
      if (mutation !== undefined) seen = { ...seen, requests: mutation.requests, mutation };
      known.set(member.name, seen);
    }
    return seen;
  };
}
