import type { ClusterClient } from "../../../src/kube/client.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { HOST } from "../../support/builders/claim.ts";

/** A member that answers, as controllers of what pods need see it; `parts` has what else they ask of it. */
export function answeringMember(
  name: string,
  client: ClusterClient,
  parts: object,
): Readonly<Record<string, unknown>> & { readonly name: string } {
  return {
    name,
    reachable: true,
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

/** What every such controller is given: the host's identity, these members with all their namespaces, a clock, and nobody who listens. */
export function surroundings(members: readonly { readonly name: string }[], clock: Clock): object {
  return {
    identity: HOST,
    registry: { members: () => members, member: (name: string) => members.find((member) => member.name === name) },
    memberNamespaces: { createIn: (_m: object, _n: string, _s: object, make: () => unknown) => make() },
    onRead: () => {},
    onProxy: () => {},
    clock,
    log: createLogger({ level: "silent" }),
  };
}
