import { ownerOf } from "../../../src/pods/delegate.ts";
import { isBound } from "../../../src/pods/pod-state.ts";
import { deletePod } from "./api-server.ts";
import { restart } from "./controller.ts";
import { recorded } from "./pods.ts";
import { changeMember, type Event, marked, onHost, truth, type World } from "./world.ts";

/** A Cluster is deleted, whatever its member still has, and created again at any time. */
export function membership(world: World): { readonly free: Event[]; readonly faults: Event[] } {
  const free: Event[] = [];
  const faults: Event[] = [];
  const proxy = truth(world.host);
  for (const { name, left } of world.members) {
    if (left !== true) {
      const forgotten = changeMember(world, name, (member) => ({ ...member, left: true }));
      // `legation unjoin --force` accepts that pods there run on.
      const excused = proxy === undefined ? forgotten : marked(forgotten, `left:${proxy.metadata.uid}`);
      faults.push({ what: `${name}: forgotten`, world: excused });
      continue;
    }
    free.push({ what: `${name}: joined again`, world: joined(world, name) });
    // The pod garbage collector (gcOrphaned): the node is gone.
    if (proxy !== undefined && isBound(proxy) && recorded(proxy).member === name) {
      free.push({ what: "collected with its node", world: onHost(world, deletePod(proxy, { graceSeconds: 0 })) });
    }
  }
  return { free, faults };
}

/** Returns the world with the member as one that has never been read. */
export function joined(world: World, name: string): World {
  return changeMember(world, name, ({ left: _, departed: __, ...member }) => ({
    ...member,
    reachable: false,
    read: false,
    versions: [undefined, truth(member)],
    ...(world.late === undefined ? {} : { unsettled: true as const }),
  }));
}

/** The host is backed up once, and restored from that backup. */
export function restoration(world: World): { readonly free: Event[]; readonly faults: Event[] } {
  if (world.backup === undefined) {
    const delegates = world.members.flatMap((member) => truth(member)?.metadata.uid ?? []);
    return {
      free: [{ what: "backup", world: { ...world, backup: { slot: truth(world.host), delegates } } }],
      faults: [],
    };
  }
  const { slot, delegates } = world.backup;
  if (world.held !== undefined) return { free: [], faults: [] };
  const held = world.members.flatMap((member) => {
    const pod = truth(member);
    return pod === undefined || ownerOf(pod) === undefined || delegates.includes(pod.metadata.uid)
      ? []
      : [pod.metadata.uid];
  });
  let restored: World = restart({ ...world, host: { versions: [slot] }, held });
  // Violations by the lost writes do not count from here on.
  for (let number = 1; number <= world.created; number += 1) {
    for (const mark of [`p${number}`, `deleted:p${number}`]) restored = marked(restored, mark);
  }
  return { free: [], faults: [{ what: "host: set back to its backup", world: restored }] };
}
