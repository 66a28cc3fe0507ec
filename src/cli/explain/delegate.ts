import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { pods } from "../../kube/resources.ts";
import { Failure } from "../shared/failure.ts";
import type { OpenMember } from "../shared/open-member.ts";

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
// A member that does not answer must not keep the rest of a pod's way waiting.
const WITHIN_MS = 3_000;

/**
 * Reads when a pod's delegate was made, by its member's clock, with the user's own rights there; RFC 3339. Undefined: there is no
 * delegate, or the user has no way to it. Rejects with the signal's reason.
 */
export async function readDelegateMade(
  { metadata }: Stored<Pod>,
  open: OpenMember,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = "", name, annotations = {} } = metadata;
  const { [CLUSTER_ANNOTATION]: member, [DELEGATE_UID_ANNOTATION]: uid } = annotations;
  if (member === undefined || uid === undefined) return undefined;
  const within = AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS)]);
  try {
    const client = await open(member);
    const found = await client.find(pods, { namespace, name }, { signal: within });
    const { creationTimestamp: made = "" } = found?.metadata ?? {};
    const isTime = TIMESTAMP.test(made) && !Number.isNaN(Date.parse(made));
    return found?.metadata.uid === uid && isTime ? made : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (within.aborted || isKubeError(error) || error instanceof Failure) return undefined;
    throw error;
  }
}
