import { placementExcludes, problemsText, type RequestedPlacement } from "../../api/annotations.ts";
import { defined } from "../../api/defined.ts";
import { CLUSTER_ANNOTATION, OVERRIDES_ANNOTATION, PREFERENCES_ANNOTATION } from "../../api/keys.ts";
import type { Job, Pod, PodSpec, Stored } from "../../api/kubernetes.ts";
import type { SchedulingPreferences } from "../../api/preferences.ts";
import type { Candidate, Rule } from "../../placement/candidate.ts";
import { limitReached } from "../../placement/division-rule.ts";
import { type RankInput, type Ranking, rank } from "../../placement/rank.ts";
import { podRequests } from "../../placement/requests.ts";
import { type OverriddenSpec, overrideSpec } from "../../pods/overrides.ts";
import type { PodRules } from "../../scheduling/pod-rules.ts";
import { divideJob } from "./division.ts";
import type { JobShare } from "./shares.ts";

/** The rules of authors and operators, as for a pod of the Job's template. */
export type JobRules = Pick<PodRules, "parse" | "optedIn" | "of">;

/** Members for a whole Job, or why none is looked for. */
export type Choice =
  | {
      readonly input: RankInput;
      readonly ranking: Ranking;
      /** How the Job is divided. Absent: one member gets all of it. */
      readonly preferences?: SchedulingPreferences;
    }
  | { readonly problem: string };

export interface ChoiceOptions {
  readonly rules: JobRules;
  readonly candidates: readonly Candidate[];
  /** Returns why Jobs of the member cannot be read. Absent: they can. */
  readonly unread?: (member: string) => string | undefined;
}

/** Reports whether the Job is divided. Preferences of a namespace are for pods: they would divide Jobs that cannot be. */
export function asksForShares({ metadata }: Stored<Job>): boolean {
  return metadata.annotations?.[PREFERENCES_ANNOTATION] !== undefined;
}

/** Ranks the members for one pod of the Job's template. */
export function choiceFor(job: Stored<Job>, { rules, candidates, unread }: ChoiceOptions): Choice {
  const pod = podOfJob(job);
  if (!rules.optedIn(pod)) return { problem: `namespace ${job.metadata.namespace} is not opted in` };
  const parsed = rules.parse(pod);
  if (!parsed.ok) return { problem: problemsText(parsed) };
  const { placement } = parsed;
  const preferences = asksForShares(job) ? placement.preferences : undefined;
  const selection: Rule = {
    filter: (candidate) => {
      const message =
        placementExcludes(placement, candidate) ?? unread?.(candidate.name) ?? misfit(pod, placement, candidate);
      if (message !== undefined) return { reason: "NotSelected", message };
      return preferences && limitReached(preferences, candidate.name, 0);
    },
  };
  const { policy, wishes } = rules.of(pod, placement);
  const input = { requests: podRequests(pod), rules: [selection, ...policy, ...wishes], candidates };
  return { input, ranking: rank(input), ...defined({ preferences }) };
}

/** Returns the shares of a Job that no member has yet: all of it for the best member, or a part for each that gets one. */
export function newShares(
  job: Stored<Job>,
  { fitting, preferences }: { readonly fitting: readonly string[]; readonly preferences?: SchedulingPreferences },
): readonly JobShare[] {
  if (preferences !== undefined) return divideJob(job, preferences, fitting);
  return fitting.slice(0, 1).map((member) => ({ member }));
}

/** Returns the members that may have the Job, best first. It may wait in one without room, but not in one whose nodes are all too small. */
export function mayHave({ fitting, full, refusals }: Ranking): readonly string[] {
  const tooSmall = new Set(refusals.filter(({ reason }) => reason === "TooLarge").map(({ cluster }) => cluster));
  return [...fitting, ...full.filter((member) => !tooSmall.has(member))];
}

/** Returns the template's spec with the author's overrides for the member, or why they do not fit. */
export function podSpecIn(spec: PodSpec, { overrides = [] }: RequestedPlacement, candidate: Candidate): OverriddenSpec {
  const overridden = overrideSpec(spec, overrides, candidate);
  return "problem" in overridden ? { problem: `${OVERRIDES_ANNOTATION}: ${overridden.problem}` } : overridden;
}

function misfit({ spec }: Pod, placement: RequestedPlacement, candidate: Candidate): string | undefined {
  const given = spec && podSpecIn(spec, placement, candidate);
  return given !== undefined && "problem" in given ? given.problem : undefined;
}

/** Returns a pod of the Job's template, as rules judge it. The Job's annotations count, not those of its pods. */
export function podOfJob({ metadata, spec }: Stored<Job>): Stored<Pod> {
  const { [CLUSTER_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  const { labels = {} } = spec?.template.metadata ?? {};
  return {
    metadata: { ...metadata, labels, annotations },
    ...(spec?.template.spec === undefined ? {} : { spec: spec.template.spec }),
  };
}
