import type { Pod } from "../api/kubernetes.ts";
import type { Override } from "../api/overrides.ts";
import type { Amounts } from "../api/quantity.ts";
import { type Merged, withoutMerged } from "../pods/host-admission.ts";
import { overrideSpec } from "../pods/overrides.ts";
import { specInMember } from "../pods/virtual-node-terms.ts";
import type { Candidate } from "./candidate.ts";
import { podRequests } from "./requests.ts";

/** A pod as it would be in one member. */
export interface PodInMember {
  readonly pod: Pod;
  readonly requests: Amounts;
  /** Reason why its node selector or affinity excludes the member's virtual node, if any. */
  readonly refusal?: string;
  /** Weight of its preferred node affinity to the member's virtual node. */
  readonly weight: number;
}

/** A pod as it would be in each member, with its author's overrides for that one, and without what it says of virtual nodes or the host merged. */
export type InMember = (member: Pick<Candidate, "name" | "labels" | "nodesHave">) => PodInMember;

/** Reckons once for each member that the pod is another one for. A member that they do not fit does not get the pod in any form. */
export function inMembers(pod: Pod, overrides: readonly Override[] = [], merged?: Merged): InMember {
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
      known.set(member.name, seen);
    }
    return seen;
  };
}
