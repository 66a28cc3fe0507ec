import { execute, fates, perform, restart } from "./controller.ts";
import { changeMember, type Event, marked, type Step, type World } from "./world.ts";

// More would only repeat the behaviour of two.
const MOST = 2;

/** Returns the events of given-up requests that may still happen at any time. */
export function lateEvents(world: World): Event[] {
  return (world.late ?? []).flatMap((step, index) => {
    const late = (world.late ?? []).filter((_, other) => other !== index);
    const after = perform({ ...world, late }, step);
    return [
      { what: `late ${nameOf(step)}`, world: step.type === "create" ? marked(after, `late:${step.proxyUid}`) : after },
    ];
  });
}

/** Returns the faults by which the next request's sender gives it up or is killed. */
export function lateFaults(planned: World): Event[] {
  const [step] = planned.pending;
  if (step === undefined || (planned.late?.length ?? 0) >= MOST || !fates(planned).faults.includes("unanswered")) {
    return [];
  }
  const late = [...(planned.late ?? []), step];
  return [
    { what: `${nameOf(step)}: given up`, world: execute({ ...planned, late }, "late") },
    { what: `${nameOf(step)}: its sender killed`, world: restart({ ...planned, late }) },
  ];
}

/**
 * A member that has just answered again settles: earlier requests have happened by then, or never will.
 * This assumes a bound on time, which is why controllers wait a moment.
 */
export function settleEvents(world: World): Event[] {
  return world.members.flatMap(({ name, read, unsettled }) => {
    const creates = world.late?.some((step) => step.type === "create" && step.member === name) ?? false;
    if (unsettled !== true || !read || creates) return [];
    return [{ what: `${name}: settled`, world: settled(world, name) }];
  });
}

function settled(world: World, name: string): World {
  return changeMember(world, name, ({ unsettled: _, ...member }) => member);
}

function nameOf(step: Step): string {
  return "member" in step ? `${step.type} in ${step.member}` : step.type;
}
