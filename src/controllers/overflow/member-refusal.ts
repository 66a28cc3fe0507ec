import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { whyNotMade } from "../../clusters/namespaces.ts";
import { isCopy } from "../../copies/copy-metadata.ts";
import { DEPENDENCIES, type DependencyKind } from "../../copies/dependencies.ts";
import { foreignMessage, NEEDED } from "../../copies/foreign-message.ts";
import { type Dependency, FAMILIES } from "../../copies/named-by-pods.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { missingObject } from "../../kube/messages.ts";
import type { Refusal } from "../../placement/candidate.ts";
import type { SharedBy } from "../../scheduling/placement-view.ts";
import { isOfAllAlike, refusalOf } from "../api-refusal.ts";
import { isUntryable } from "../try-delegate.ts";

export interface NotTaken {
  readonly refusal: Refusal;
  readonly sharedBy?: SharedBy;
}

/** Returns undefined if the member would take the delegate, or lacks only what is created before it. */
export function dryRunRefusal(member: string, error: unknown, makesNamespaces: boolean): NotTaken | undefined {
  if (isKubeError(error, "AlreadyExists")) {
    return { refusal: { cluster: member, reason: "NameTaken", message: "a pod of that name is there" } };
  }
  const refused = refusalOf(isKubeError(error, "NotFound") ? whyNotMade(error, member) : error);
  if (isKubeError(error)) {
    if (isKubeError(error, "NotFound") && makesNamespaces) return undefined;
    if (missingObject(error.detail)?.kind === "ServiceAccount") return undefined;
    if (isUntryable(error)) return undefined;
  }
  if (refused === undefined) throw error;
  const sharedBy = isKubeError(error) && isOfAllAlike(error) ? { sharedBy: "spec" as const } : {};
  return { refusal: { cluster: member, ...refused }, ...sharedBy };
}

export interface RefusalQuestion {
  readonly host: ClusterClient;
  readonly hostId: string;
  readonly member: Pick<Member, "name" | "client" | "answerOf" | "noteFailure">;
  readonly signal: AbortSignal;
}

/** Another owner's object has the name of a copy. Rejects with KubeError if that cannot be read. */
export async function dependencyRefusal(pod: Stored<Pod>, places: RefusalQuestion): Promise<Refusal | undefined> {
  for (const dependency of FAMILIES.dependencies.of(pod)) {
    if (DEPENDENCIES[dependency.kind].isUsedInPlace?.(dependency.name) === true) continue;
    const message = await obstacle(dependency, places);
    if (message !== undefined) return { cluster: places.member.name, reason: "RefusedByMember", message };
  }
  return undefined;
}

async function obstacle(
  dependency: Dependency<DependencyKind>,
  { host, hostId, member, signal }: RefusalQuestion,
): Promise<string | undefined> {
  const { kind, name } = dependency;
  const { resource } = DEPENDENCIES[kind];
  try {
    const there = await member.answerOf(findByList(member.client, resource, dependency, signal));
    if (there === undefined || isCopy(there, hostId, resource)) return undefined;
  } catch (error) {
    member.noteFailure(error);
    // A list is NotFound only for a type.
    if (isKubeError(error, "NotFound")) return `does not serve ${resource.plural}, so no ${kind} ${name}${NEEDED}`;
    if (!isRefusal(error)) throw error;
    return `whether it has ${kind} ${name}${NEEDED}, cannot be read: ${error.detail}`;
  }
  // An object that the host lacks is not copied: the pod uses the member's.
  const source = await findByList(host, resource, dependency, signal);
  return source === undefined ? undefined : foreignMessage(kind, name, NEEDED);
}
