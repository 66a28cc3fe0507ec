import type { Pod, Stored } from "../api/kubernetes.ts";
import type { Member } from "../clusters/member.ts";
import { isKubeError, KubeError } from "../kube/errors.ts";
import { hasNoDryRun } from "../kube/messages.ts";
import { pods } from "../kube/resources.ts";
import { droppedFields } from "../pods/dropped-fields.ts";

/** Reports whether a webhook with side effects keeps the member from dry runs: only the real request will tell. */
export function isUntryable(error: unknown): boolean {
  return isKubeError(error) && hasNoDryRun(error.detail);
}

/** Returns the delegate as the member would store it. Rejects with Unprocessable also if the member would drop fields. */
export async function tryDelegate(member: Member, delegate: Pod, signal: AbortSignal): Promise<Stored<Pod>> {
  const { spec = { containers: [] } } = delegate;
  const answer = await member.client.create(pods, delegate, { signal, dryRun: true, dropManagedFields: true });
  const dropped = droppedFields(spec, answer.spec ?? { containers: [] });
  if (dropped.length === 0) return answer;
  const detail = `it would run without ${dropped.join(", ")}: the cluster's version or feature gates do not have that`;
  const { namespace = "", name = "" } = delegate.metadata ?? {};
  throw new KubeError(detail, {
    code: "Unprocessable",
    cluster: member.name,
    verb: "create",
    resource: "pods",
    namespace,
    objectName: name,
  });
}
