import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isCopy } from "../../copies/copy.ts";
import { DEPENDENCIES } from "../../copies/dependencies.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isRefusal } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import type { Refusal } from "../../placement/candidate.ts";
import { type Dependency, dependenciesOf } from "../../pods/dependencies.ts";
import { foreignMessage } from "../copying/executor.ts";
import { NEEDED } from "../dependencies/controller.ts";

/** Where a pod's dependencies are looked for. */
export interface Places {
  readonly host: ClusterClient;
  readonly hostId: string;
  readonly member: Pick<Member, "name" | "client" | "answerOf" | "noteFailure">;
  readonly signal: AbortSignal;
}

/**
 * Why the member cannot have a copy of something that the pod needs, by what is there in its place; undefined when nothing is in
 * the way. Rejects with KubeError when nobody knows.
 */
export async function dependencyRefusal(pod: Stored<Pod>, places: Places): Promise<Refusal | undefined> {
  for (const dependency of dependenciesOf(pod)) {
    if (DEPENDENCIES[dependency.kind].isUsedInPlace?.(dependency.name) === true) continue;
    const message = await obstacle(dependency, places);
    if (message !== undefined) return { cluster: places.member.name, reason: "RefusedByMember", message };
  }
  return undefined;
}

async function obstacle(dependency: Dependency, { host, hostId, member, signal }: Places): Promise<string | undefined> {
  const { kind, name } = dependency;
  const { resource } = DEPENDENCIES[kind];
  try {
    const there = await member.answerOf(findByList(member.client, resource, dependency, signal));
    if (there === undefined || isCopy(there, hostId)) return undefined;
  } catch (error) {
    member.noteFailure(error);
    if (!isRefusal(error)) throw error;
    return `whether it has ${kind} ${name}, which the pod needs, cannot be read: ${error.detail}`;
  }
  // What the host does not have is not copied, and the pod uses what is there.
  const source = await findByList(host, resource, dependency, signal);
  return source === undefined ? undefined : foreignMessage(kind, name, NEEDED);
}
