import { problemsText } from "../../api/annotations.ts";
import { jsonEqual } from "../../api/json.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import type { Demand } from "../../controllers/copying/model.ts";
import { PerMember, type Source } from "../../copies/source.ts";
import type { Candidate } from "../../placement/candidate.ts";
import { specInMember } from "../../pods/virtual-node-terms.ts";
import { type JobRules, podOfJob, podSpecIn } from "./choice.ts";
import { afterResumption, jobOfShare } from "./division.ts";
import { hasStarted, isFinished, isLost, outsideQueue, takesTemplate, templateFields } from "./kind.ts";
import { hasShares, isFailing, membersOfJob, sharesOf } from "./shares.ts";

/** Jobs as members are given them: the copier asks at every event of a Job. */
export class JobsInMembers {
  readonly #rules: Pick<JobRules, "parse">;
  readonly #given = new PerMember<Job, readonly [Candidate]>();

  constructor(rules: Pick<JobRules, "parse">) {
    this.#rules = rules;
  }

  /** Returns the member's share of the Job, with the author's overrides. */
  of(job: Stored<Job>, candidate: Candidate): Source<Job> {
    // A member's candidate is another object once its labels differ.
    return this.#given.of(job, { member: candidate.name, inputs: [candidate] }, (before) =>
      sameIfEqual(before, this.#compute(job, candidate)),
    );
  }

  /** Has all computed anew: defaults of namespaces may hold overrides. */
  reset(): void {
    this.#given.reset();
  }

  #compute(whole: Stored<Job>, candidate: Candidate): Source<Job> {
    const shares = sharesOf(whole);
    const share = shares?.find(({ member }) => member === candidate.name);
    if (shares === undefined || share === undefined) return { state: "unknown" };
    const job = outsideQueue(jobOfShare(whole, share, shares));
    const parsed = this.#rules.parse(podOfJob(job));
    const written = job.spec?.template.spec;
    if (!parsed.ok) return { state: "unknown", message: problemsText(parsed) };
    if (written === undefined || job.spec === undefined) return { state: "present", object: job };
    const given = podSpecIn(written, parsed.placement, candidate);
    if ("problem" in given) return { state: "unknown", message: given.problem };
    // Kueue names the member by the node selector, which no node of it has.
    const { spec, refusal } = specInMember(candidate, given.spec);
    if (refusal !== undefined) return { state: "unknown", message: refusal };
    if (spec === written) return { state: "present", object: job };
    const template = { ...job.spec.template, spec };
    return { state: "present", object: { ...job, spec: { ...job.spec, template } } };
  }
}

/** Returns the Job as a member with this copy takes it: with another pod template only while the copy may have one. */
export function forCopy(job: Stored<Job>, copy: Stored<Job> | undefined): Stored<Job> {
  if (copy?.spec === undefined || job.spec === undefined) return job;
  const given = hasShares(job) ? afterResumption(job, copy) : job;
  const { spec = job.spec } = given;
  if (takesTemplate(copy) || jsonEqual(templateFields(spec), templateFields(copy.spec))) return given;
  return { ...given, spec: { ...spec, template: copy.spec.template } };
}

/** Returns the earlier object where both are alike: the copier compares each object once. */
function sameIfEqual(before: Source<Job> | undefined, now: Source<Job>): Source<Job> {
  if (before?.state !== "present" || now.state !== "present") return now;
  return jsonEqual(before.object.spec, now.object.spec) ? before : now;
}

/** A share that has started is not created again, and one that has finished is left as it is. */
export function demandFor(job: Stored<Job>, member: string): Demand {
  const share = sharesOf(job)?.find((one) => one.member === member);
  if (share === undefined || (share.part !== undefined && isFinished(share))) return "frozen";
  return hasStarted(share) || (share.part !== undefined && isFailing(job)) ? "kept" : "needed";
}

/** Reports whether the member is to have a copy, as far as the Job tells. */
export function isWantedIn(job: Stored<Job>, member: string): boolean {
  if (job.metadata.deletionTimestamp !== undefined || !membersOfJob(job).includes(member)) return false;
  const share = sharesOf(job)?.find((one) => one.member === member);
  return share === undefined || !isLost(share);
}
