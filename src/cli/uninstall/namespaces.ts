import { DELEGATION_LABEL } from "../../api/keys.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { namespaces } from "../../kube/resources.ts";
import type { RemovalContext } from "./objects.ts";

/** Opts all namespaces out. Resolves to the names of those that were opted in. Rejects with KubeError. */
export async function unlabelNamespaces({
  host,
  signal,
  report,
}: Pick<RemovalContext, "host" | "signal" | "report">): Promise<string[]> {
  const unlabelled: string[] = [];
  for (const { metadata } of await listAll(host, namespaces, { labelSelector: DELEGATION_LABEL, signal })) {
    const body = { metadata: { uid: metadata.uid, labels: { [DELEGATION_LABEL]: null } } };
    try {
      await host.patch(namespaces, { name: metadata.name }, { type: "merge", body }, { signal });
    } catch (error) {
      // Gone meanwhile, or another by now.
      if (!isKubeError(error, "NotFound", "Conflict")) throw error;
      continue;
    }
    report(`Namespace ${metadata.name}: label ${DELEGATION_LABEL}=${metadata.labels?.[DELEGATION_LABEL]} taken off`);
    unlabelled.push(metadata.name);
  }
  return unlabelled;
}
