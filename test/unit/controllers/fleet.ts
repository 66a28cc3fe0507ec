import { objectKey, type Pod, type Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { Events } from "../../../src/runtime/event-bus.ts";
import type { ReflectorEvent } from "../../../src/runtime/reflector.ts";
import type { Store } from "../../../src/runtime/store.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { HOST } from "../../support/builders/claim.ts";
import type { FakeClock } from "../../support/clock/fake-clock.ts";

/** Returns a member that answers, as these controllers see it; `parts` adds to it. */
export function answeringMember(
  name: string,
  client: ClusterClient,
  parts: object,
): Readonly<Record<string, unknown>> & { readonly name: string } {
  return {
    name,
    reachable: true,
    lost: false,
    reachableSince: 0,
    read: true,
    client,
    memory: new ByteBudget(1e6),
    watches: new Set(),
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
    ...parts,
  };
}

/** Returns the options that every such controller gets: identity, members with all their namespaces, and a clock. */
export function surroundings(members: readonly { readonly name: string }[], clock: Clock): object {
  return {
    identity: HOST,
    registry: { members: () => members, member: (name: string) => members.find((member) => member.name === name) },
    recorder: { record: () => {} },
    memberNamespaces: { createIn: (_m: object, _n: string, _s: object, make: () => unknown) => make() },
    events: new Events(),
    clock,
    log: createLogger({ level: "silent" }),
  };
}

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
