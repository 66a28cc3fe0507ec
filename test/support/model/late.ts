import { execute, fates, perform, restart } from "./controller.ts";
import { changeMember, type Event, marked, type Step, type World } from "./world.ts";

// More would only repeat what two do.
const MOST = 2;

/** What a sender has given up, and what reaches its API server all the same: whenever it likes, or never. */
export function lateEvents(world: World): Event[] {
  return (world.late ?? []).flatMap((step, index) => {
    const late = (world.late ?? []).filter((_, other) => other !== index);
    const after = perform({ ...world, late }, step);
    return [
      { what: `late ${nameOf(step)}`, world: step.type === "create" ? marked(after, `late:${step.proxyUid}`) : after },
    ];
  });
}

/** The next request is under way when its sender gives it up, or is killed. */
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
 * A member that has just answered again is as it will be: what had reached it before has been done by then, or never will be.
 * That is an assumption about time, and why controllers wait a moment.
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
