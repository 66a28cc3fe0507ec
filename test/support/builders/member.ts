import type { Cluster } from "../../../src/api/cluster.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { Member } from "../../../src/clusters/member.ts";
import { MemberDelegates } from "../../../src/clusters/member-delegates.ts";
import type { MemberEvents } from "../../../src/clusters/member-options.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { fakeClient } from "../clients/fake-client.ts";
import { FakeClock } from "../clock/fake-clock.ts";
import { HOST } from "./claim.ts";

/** The Cluster of a member. */
export function cluster(
  name: string,
  { metadata, spec, status }: { [Field in "metadata" | "spec" | "status"]?: Partial<Cluster[Field]> } = {},
): Stored<Cluster> {
  return {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name, uid: `uid-of-${name}`, resourceVersion: "1", ...metadata },
    spec: { credentialsSecret: { name }, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

/**
 * A member that answers and has been read, whatever its client does. `parts` are its other properties; a test changes them with
 * `withState`.
 */
export function member(
  name: string,
  client: ClusterClient = fakeClient({ cluster: name }),
  parts: Partial<Member> = {},
): Member {
  const made = new Member({
    cluster: cluster(name),
    client,
    hostId: HOST.id,
    events: new Events<MemberEvents<Member>>(),
    clock: new FakeClock(),
    log: createLogger({ level: "silent" }),
  });
  return withState(made, {
    client,
    everywhere: client,
    reachable: true,
    lost: false,
    reachableSince: 0,
    read: true,
    memory: new ByteBudget(1e6),
    watches: new Set(),
    answerOf: (answer) => answer,
    noteFailure: () => {},
    ...parts,
  });
}

/** The delegates of a member: none, but for what `parts` say. */
export function delegates(parts: Partial<MemberDelegates> = {}): MemberDelegates {
  const made = new MemberDelegates({
    client: fakeClient({}),
    hostId: HOST.id,
    requests: member("west").requests,
    budget: new ByteBudget(1e6),
    clock: new FakeClock(),
    log: createLogger({ level: "silent" }),
    onChange: () => {},
    onEnded: () => {},
    onState: () => {},
  });
  return withState(made, parts);
}

/** Gives an object's properties these values, in place of what it finds out by itself. */
export function withState<T extends object>(made: T, state: Partial<T>): T {
  for (const [key, value] of Object.entries(state)) {
    Object.defineProperty(made, key, { value, writable: true, configurable: true, enumerable: true });
  }
  return made;
}
