import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { isBound, isDeleting, isTerminal } from "../../../src/pods/phase.ts";
import { isForeign } from "./environment.ts";
import { recorded, statusSource } from "./pods.ts";
import { truth, type World } from "./world.ts";

const ORDER: Readonly<Record<string, number>> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };

/** What one event has broken; undefined when all rules hold. */
export function brokenRule(before: World, after: World): string | undefined {
  return (
    twoAlive(after) ??
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
  const twice = owners.find((uid, index) => owners.indexOf(uid) !== index);
  return twice === undefined ? undefined : `${twice} has two live delegates`;
}

function foreignTouched(before: World, after: World): string | undefined {
  const touched = before.members.find(
    (member, index) => isForeign(truth(member)) && truth(member) !== after.members.map(truth)[index],
  );
  return touched === undefined ? undefined : `somebody else's pod in ${touched.name} was changed`;
}

function releasedTooSoon(before: World, after: World): string | undefined {
  const uid = truth(before.host)?.metadata.uid;
  if (uid === undefined || truth(after.host)?.metadata.uid === uid || after.abandoned.includes(uid)) return undefined;
  const left = liveDelegates(after).some((pod) => ownerOf(pod)?.uid === uid);
  return left ? `${uid} is gone, and its delegate lives` : undefined;
}

function phaseWentBack(before: World, after: World): string | undefined {
  const [earlier, now] = [truth(before.host), truth(after.host)];
  if (earlier === undefined || earlier.metadata.uid !== now?.metadata.uid) return undefined;
  const [from = "Pending", to = "Pending"] = [earlier.status?.phase, now.status?.phase];
  const [fromOrder = 0, toOrder = 0] = [ORDER[from], ORDER[to]];
  if (toOrder > fromOrder || from === to) return undefined;
  return `the phase of ${now.metadata.uid} went from ${from} to ${to}`;
}

function wrongStatus({ host, abandoned }: World): string | undefined {
  const proxy = truth(host);
  if (proxy === undefined) return undefined;
  const { uid } = proxy.metadata;
  const source = statusSource(proxy);
  const known = recorded(proxy);
  if (isBound(proxy) && (known.uid === undefined || known.member === undefined)) return `${uid} records no delegate`;
  if (source !== undefined && source !== known.uid)
    return `${uid} shows the status of ${source}, and records ${known.uid}`;
  if (proxy.status?.phase === "Failed" && !isDeleting(proxy) && !abandoned.includes(`deleted:${uid}`)) {
    return `${uid} has failed, and nobody had deleted its delegate`;
  }
  return undefined;
}

/** What is wrong with a world in which nothing more will happen. */
export function wrongAtRest(world: World): string | undefined {
  const proxy = truth(world.host);
  const delegates = world.members.flatMap((member) => truth(member) ?? []).filter((pod) => !isForeign(pod));
  const orphan = delegates.find((pod) => ownerOf(pod)?.uid !== proxy?.metadata.uid);
  if (orphan !== undefined) return `${orphan.metadata.uid} has been left behind`;
  if (proxy === undefined) return undefined;
  const { uid } = proxy.metadata;
  if (isDeleting(proxy)) return `${uid} never goes`;
  if (delegates.some((pod) => recorded(proxy).uid !== pod.metadata.uid))
    return `${uid} has a delegate that it does not record`;
  if (isTerminal(proxy)) return undefined;
  if (delegates.length === 0) return `${uid} has no delegate`;
  return proxy.status?.phase === delegates[0]?.status?.phase ? undefined : `${uid} never hears how its delegate is`;
}
