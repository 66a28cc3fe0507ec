import { objectKey, type Pod, type Stored } from "../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES, type Shard } from "../../../src/api/shards.ts";
import type { Member } from "../../../src/clusters/member.ts";
import type { MemberNamespaces } from "../../../src/clusters/namespaces.ts";
import type { Registry } from "../../../src/clusters/registry.ts";
import type { ControllerEvents } from "../../../src/controllers/events.ts";
import type { HostIdentity } from "../../../src/pods/delegate.ts";
import type { ControllerOptions } from "../../../src/runtime/controller.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import type { EventRecorder } from "../../../src/runtime/event-recorder.ts";
import type { ReflectorEvent } from "../../../src/runtime/reflector.ts";
import type { Store } from "../../../src/runtime/store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { HOST } from "../../support/builders/claim.ts";
import type { FakeClock } from "../../support/clock/fake-clock.ts";

/** The options that every controller gets. */
export interface Surroundings extends ControllerOptions {
  readonly identity: HostIdentity;
  readonly shard: Shard;
  readonly registry: Pick<Registry, "members" | "member" | "cluster">;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly memberNamespaces: Pick<MemberNamespaces, "createIn">;
  readonly events: Events<ControllerEvents>;
}

/** Returns identity, members with all their namespaces, a recorder that forgets, and a clock. */
export function surroundings(members: readonly Member[], clock: FakeClock): Surroundings {
  return {
    identity: HOST,
    shard: ALL_NAMESPACES,
    registry: registryOf(members),
    recorder: { record: () => {} },
    memberNamespaces: namespacesThere,
    events: new Events<ControllerEvents>(),
    clock,
    log: createLogger({ level: "silent" }),
  };
}

/** A registry of members that are all joined and connected. `parts`: its other answers. */
export function registryOf(members: readonly Member[], parts: Partial<KnownMembers> = {}): KnownMembers {
  const member = (name: string): Member | undefined => members.find((each) => each.name === name);
  return {
    members: () => [...members],
    candidates: () => members.map((each) => each.candidate()),
    member,
    cluster: (name) => member(name)?.cluster,
    clusters: () => members.map(({ cluster }) => cluster),
    unconnected: () => [],
    holders: (key) => members.filter(({ delegates }) => (delegates.get(key) ?? delegates.departed(key)) !== undefined),
    joinedAs: () => undefined,
    problem: () => undefined,
    server: () => undefined,
    forget: () => {},
    ...parts,
  };
}

type KnownMembers = Pick<
  Registry,
  | "members"
  | "candidates"
  | "member"
  | "cluster"
  | "clusters"
  | "unconnected"
  | "holders"
  | "joinedAs"
  | "problem"
  | "server"
  | "forget"
>;

/** Members that have every namespace. */
export const namespacesThere: Pick<MemberNamespaces, "createIn"> = {
  createIn: (_member, _namespace, _signal, create) => create(false),
};

/** Returns a function that puts a proxy on the host, tells the controller, and lets it act. */
export function puttingInto(
  proxies: Store<Pod>,
  controller: { onProxy(event: ReflectorEvent<Pod>): void },
  clock: FakeClock,
): (object: Stored<Pod>) => Promise<void> {
  return async (object) => {
    const previous = proxies.get(objectKey(object.metadata));
    proxies.set(object);
    controller.onProxy(previous === undefined ? { type: "added", object } : { type: "updated", object, previous });
    await clock.advance(10);
  };
}
