import type { KubeEvent, KubeObject, Stored } from "../../api/kubernetes.ts";
import { membersOfObject } from "../../copies/object-members.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Resource } from "../../kube/resources.ts";
import type { MemberPart } from "../../whole/member-part.ts";
import type { WholeType } from "../../whole/type.ts";
import { objectText } from "../shared/output.ts";
import { notOnHost } from "../shared/reading.ts";
import { firstTimeOf, lastOf, readEvents } from "./events.ts";
import type { Trouble } from "./model.ts";

/** Reads an object and its events, and further facts at the same time. Rejects with `Failure` if there is none, else with KubeError. */
export async function readWhole<T extends KubeObject, F>(
  client: ClusterClient,
  { resource, ref }: { readonly resource: Resource<T>; readonly ref: { namespace?: string; name: string } },
  readFacts: (object: Stored<T>) => Promise<F>,
  signal: AbortSignal,
): Promise<{ readonly object: Stored<T>; readonly told: readonly KubeEvent[]; readonly facts: F }> {
  const object = await client.find(resource, ref, { signal });
  if (object === undefined) throw notOnHost(objectText(resource.kind, ref));
  const [told, facts] = await Promise.all([readEvents(client, object, signal), readFacts(object)]);
  return { object, told, facts };
}

export function toldTroubles(told: readonly KubeEvent[], reasons: readonly string[]): Trouble[] {
  return reasons.flatMap((reason) => {
    const event = lastOf(told, reason);
    return event === undefined ? [] : [{ what: `${reason}: ${event.message ?? ""}`, since: firstTimeOf(event) }];
  });
}

/** Returns what members have of a whole object, by its record. `builtIn`: absent for an object of a delegated type. */
export function partsOf(object: Stored<KubeObject>, builtIn: WholeType | undefined): readonly MemberPart[] {
  return builtIn?.partsOf(object) ?? membersOfObject({ metadata: object.metadata }) ?? [];
}
