import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { isUnplaced } from "../../../src/controllers/overflow/decide.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { everRan, isBound, isDeleting, isTerminal } from "../../../src/pods/pod-state.ts";
import { memberOf } from "../../../src/pods/proxy.ts";
import { isForeign } from "./environment.ts";
import { runsOnHost } from "./overflow.ts";
import { recorded, statusSource } from "./pods.ts";
import { shown, truth, type World } from "./world.ts";

const ORDER: Readonly<Record<string, number>> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };

/** Returns the rule that an event has broken. Undefined when all rules hold. */
export function brokenRule(before: World, after: World): string | undefined {
  return (
    twoAlive(after) ??
    twoOfOneName(after) ??
    runsInBoth(after) ??
    madeAgain(before, after) ??
    overflowedTooSoon(before, after) ??
    foreignTouched(before, after) ??
    releasedTooSoon(before, after) ??
    phaseWentBack(before, after) ??
    wrongStatus(after)
  );
}

function liveDelegates({ members }: World): Stored<Pod>[] {
  return members.flatMap((member) => {
    const pod = truth(member);
    return pod === undefined || isForeign(pod) || isTerminal(pod) ? [] : [pod];
  });
}

function twoAlive(world: World): string | undefined {
  const owners = liveDelegates(world).map((pod) => ownerOf(pod)?.uid);
  const twice = owners.find((uid, index) => owners.indexOf(uid) !== index && !world.abandoned.includes(`left:${uid}`));
  return twice === undefined ? undefined : `${twice} has two live delegates`;
}

/** Undisturbed, a pod that was deleted by force has no live delegate beside that of the next pod of its name. */
function twoOfOneName(world: World): string | undefined {
  if (world.undisturbed !== true) return undefined;
  const owners = new Set(liveDelegates(world).map((pod) => ownerOf(pod)?.uid));
  return owners.size > 1 ? `${[...owners].join(" and ")} have live delegates of one name` : undefined;
}

/** Without late requests: a pod that the controller has seen running does not run a second time. */
function madeAgain(before: World, after: World): string | undefined {
  if (after.late !== undefined) return undefined;
  const seen = [shown(before.host), ...before.members.map(({ departed }) => departed)];
  const started = seen.flatMap((pod) =>
    pod !== undefined && everRan(pod) ? [ownerOf(pod)?.uid ?? pod.metadata.uid] : [],
  );
  const had = new Set(before.members.map((member) => truth(member)?.metadata.uid));
  const made = liveDelegates(after).find(
    (pod) => !had.has(pod.metadata.uid) && started.includes(ownerOf(pod)?.uid ?? ""),
  );
  return made === undefined ? undefined : `${ownerOf(made)?.uid} has run, and is made again`;
}

/** A pod in overflow mode has a delegate only where it is bound, and none while the host could still run it. */
function runsInBoth({ overflow, host, members }: World): string | undefined {
  const pod = truth(host);
  if (overflow === undefined || pod === undefined) return undefined;
  const { uid } = pod.metadata;
  const holder = members.find((member) => {
    const delegate = truth(member);
    return delegate !== undefined && !isForeign(delegate) && ownerOf(delegate)?.uid === uid;
  });
  if (holder === undefined || memberOf(pod) === holder.name) return undefined;
  return `${uid} has a delegate in ${holder.name}, and is ${pod.spec?.nodeName ?? "the host's scheduler's"}`;
}

/** Legation takes from the host only pods without a node, present or nominated. */
function overflowedTooSoon(before: World, after: World): string | undefined {
  const [earlier, now] = [truth(before.host), truth(after.host)];
  if (before.overflow === undefined || earlier === undefined || now === undefined) return undefined;
  if (isBound(earlier) || !isBound(now) || runsOnHost(now) || isUnplaced(earlier)) return undefined;
  return `${now.metadata.uid} has overflowed, and the host may have had a node for it`;
}

function foreignTouched(before: World, after: World): string | undefined {
  const touched = before.members.find(
    (member, index) => isForeign(truth(member)) && truth(member) !== after.members.map(truth)[index],
  );
  return touched === undefined ? undefined : `a pod that is not Legation's in ${touched.name} was changed`;
}

function releasedTooSoon(before: World, after: World): string | undefined {
  const uid = truth(before.host)?.metadata.uid;
  if (uid === undefined || truth(after.host)?.metadata.uid === uid) return undefined;
  // An abandoned create may land later: its delegate is swept as soon as it is seen.
  if ([uid, `late:${uid}`, `left:${uid}`].some((mark) => after.abandoned.includes(mark))) return undefined;
  const left = liveDelegates(after).some((pod) => ownerOf(pod)?.uid === uid);
  return left ? `${uid} is gone, and its delegate lives` : undefined;
}

function phaseWentBack(before: World, after: World): string | undefined {
  const [earlier, now] = [truth(before.host), truth(after.host)];
  if (earlier === undefined || earlier.metadata.uid !== now?.metadata.uid) return undefined;
  if (before.held === undefined && after.held !== undefined) return undefined;
  const [from = "Pending", to = "Pending"] = [earlier.status?.phase, now.status?.phase];
  const [fromOrder = 0, toOrder = 0] = [ORDER[from], ORDER[to]];
  if (toOrder > fromOrder || from === to) return undefined;
  return `the phase of ${now.metadata.uid} went from ${from} to ${to}`;
}

function wrongStatus({ host, abandoned, overflow, losesNodes }: World): string | undefined {
  const proxy = truth(host);
  if (proxy === undefined || runsOnHost(proxy)) return undefined;
  const { uid } = proxy.metadata;
  const source = statusSource(proxy);
  const known = recorded(proxy);
  // Bound before it has a delegate, as in overflow mode or to a lost member.
  const awaited = (overflow !== undefined || losesNodes === true) && known.member !== undefined;
  if (isBound(proxy) && !awaited && (known.uid === undefined || known.member === undefined))
    return `${uid} records no delegate`;
  if (source !== undefined && source !== known.uid)
    return `${uid} shows the status of ${source}, and records ${known.uid}`;
  if (proxy.status?.phase === "Failed" && !isDeleting(proxy) && !abandoned.includes(`deleted:${uid}`)) {
    return `${uid} has failed, and nobody had deleted its delegate`;
  }
  return undefined;
}

/** Returns what is wrong with a world in which nothing more will happen. */
export function wrongAtRest(world: World): string | undefined {
  const proxy = truth(world.host);
  const all = world.members.flatMap((member) => truth(member) ?? []).filter((pod) => !isForeign(pod));
  const isHeld = (pod: Stored<Pod>): boolean =>
    world.held?.includes(pod.metadata.uid) === true && ownerOf(pod)?.uid !== proxy?.metadata.uid;
  const delegates = all.filter((pod) => !isHeld(pod));
  const orphan = delegates.find((pod) => ownerOf(pod)?.uid !== proxy?.metadata.uid);
  if (orphan !== undefined) return `${orphan.metadata.uid} has been left behind`;
  if (proxy === undefined) return undefined;
  const { uid } = proxy.metadata;
  if (isDeleting(proxy)) return `${uid} never goes`;
  if (runsOnHost(proxy)) return undefined;
  if (!isBound(proxy) && world.overflow !== undefined) return `${uid} never gets a node`;
  if (delegates.some((pod) => recorded(proxy).uid !== pod.metadata.uid))
    return `${uid} has a delegate that it does not record`;
  if (isTerminal(proxy)) return undefined;
  if (delegates.length === 0) return `${uid} has no delegate`;
  return proxy.status?.phase === delegates[0]?.status?.phase ? undefined : `${uid} never hears how its delegate is`;
}

/** Reports whether a bound proxy waits while another pod has its name in the member. */
export function waitsForName({ host, members }: World): boolean {
  const pod = truth(host);
  if (pod === undefined || !isBound(pod) || isDeleting(pod) || recorded(pod).uid !== undefined) return false;
  return members.some((member) => isForeign(truth(member)) && member.name === memberOf(pod));
}
