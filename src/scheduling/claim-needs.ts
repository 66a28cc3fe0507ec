import {
  type ObjectKey,
  objectKey,
  objectRef,
  type PersistentVolumeClaim,
  type Pod,
  type Stored,
} from "../api/kubernetes.ts";
import { claimNames, claimProblem } from "../copies/claims.ts";
import { NEEDED } from "../copies/foreign-message.ts";
import { leastPrepared, type Needs, type Preparation } from "../placement/needs.ts";

export function claimKeys(proxy: Pod): ObjectKey[] {
  const { namespace = "" } = proxy.metadata ?? {};
  return claimNames(proxy).map((name) => objectKey({ namespace, name }));
}

export function claimNeeds(
  keys: readonly ObjectKey[],
  find: (key: ObjectKey) => Stored<PersistentVolumeClaim> | undefined,
  preparation: (member: string, claim: Stored<PersistentVolumeClaim>) => Preparation,
): Needs {
  const claims: Stored<PersistentVolumeClaim>[] = [];
  for (const key of keys) {
    const claim = find(key);
    const message = whyNot(objectRef(key).name, claim);
    if (message !== undefined || claim === undefined) {
      // In the scheduler's words, which reports it for an ordinary pod.
      return { state: "missing", reason: "FailedScheduling", message: message ?? "" };
    }
    claims.push(claim);
  }
  return {
    state: "there",
    in: (name) => leastPrepared(claims.map((claim) => preparation(name, claim))),
  };
}

export function neededClaim({ metadata }: Stored<PersistentVolumeClaim>): string {
  return `PersistentVolumeClaim ${metadata.name}${NEEDED},`;
}

export function claimElsewhere(claim: Stored<PersistentVolumeClaim>, home: string, joined: boolean): string {
  return `${neededClaim(claim)} is in ${home}${joined ? "" : ", which has not joined"}`;
}

function whyNot(name: string, claim: Stored<PersistentVolumeClaim> | undefined): string | undefined {
  if (claim === undefined) return `persistentvolumeclaim "${name}" not found`;
  if (claim.metadata.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
  return claimProblem(claim);
}
