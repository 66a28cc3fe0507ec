import { isDeepStrictEqual } from "node:util";
import type { Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { failedAdmission, isOfQuota } from "../../controllers/api-refusal.ts";
import { isUntryable } from "../../controllers/try-delegate.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal, mayBeStarting } from "../../kube/errors.ts";
import { withoutObjectName } from "../../kube/messages.ts";
import { namespaces, pods } from "../../kube/resources.ts";
import type { WrittenObject } from "../shared/documents.ts";

/** The answer of the host's API server to a dry-run. */
export type Answer<T> =
  /** The object as admission leaves it: with defaults, and as webhooks have changed it. */
  | { readonly is: "admitted"; readonly object: T }
  | { readonly is: "refused"; readonly message: string; readonly ofQuota: boolean }
  /** No answer: the API server did not run its admission for the asker. */
  | { readonly is: "notChecked"; readonly why: string };

/** Asks whether the host would create the pod, with the asker's own rights. Rejects with KubeError if the API server does not answer. */
export function dryRunPod(host: ClusterClient, pod: Pod, signal: AbortSignal): Promise<Answer<Stored<Pod>>> {
  return answered(host.create(pods, pod, { dryRun: true, dropManagedFields: true, signal }));
}

/** Asks whether the host would take the namespace as `kubectl apply` sends it. Rejects as `dryRunPod` does. */
export function dryRunNamespace(
  host: ClusterClient,
  { metadata: { name, labels = {}, annotations = {} } }: Stored<Namespace>,
  isNew: boolean,
  signal: AbortSignal,
): Promise<Answer<Stored<Namespace>>> {
  const options = { dryRun: true, signal };
  if (isNew) return answered(host.create(namespaces, { metadata: { name, labels, annotations } }, options));
  return answered(
    host.patch(namespaces, { name }, { type: "merge", body: { metadata: { labels, annotations } } }, options),
  );
}

async function answered<T>(sent: Promise<T>): Promise<Answer<T>> {
  try {
    return { is: "admitted", object: await sent };
  } catch (error) {
    if (isKubeError(error, "Forbidden") && mayBeStarting(error)) {
      return { is: "notChecked", why: `you may not ${error.verb} ${error.resource}` };
    }
    if (isUntryable(error) && isKubeError(error)) {
      return { is: "notChecked", why: `${error.detail}: the sideEffects of its configuration are not None` };
    }
    if (!isRefusal(error) && !failedAdmission(error) && !isKubeError(error, "AlreadyExists", "NotFound")) throw error;
    // The name of a workload's pod is made up.
    const message = withoutObjectName(error.detail);
    return { is: "refused", message, ofQuota: isOfQuota(error.detail) };
  }
}

/** The host's namespaces and those of a manifest. */
export interface PlannedNamespaces {
  /** The namespaces once the manifest is applied. */
  readonly after: readonly Stored<Namespace>[];
  /** Why the API server refuses a namespace of the manifest, by name: it stays as it is. */
  readonly refused: ReadonlyMap<string, string>;
  /** Names that the manifest creates or changes: a dry-run of their pods would go by what they are now. */
  readonly changed: ReadonlySet<string>;
  readonly notChecked: readonly string[];
}

/** Applies the namespaces of a manifest, wherever in it they stand. `ask` asks the API server about one that is new or changes. */
export async function planNamespaces(
  stored: readonly Stored<Namespace>[],
  objects: readonly WrittenObject[],
  ask: (namespace: Stored<Namespace>, isNew: boolean) => Promise<Answer<Stored<Namespace>>>,
): Promise<PlannedNamespaces> {
  const all = new Map(stored.map((namespace) => [namespace.metadata.name, namespace]));
  const refused = new Map<string, string>();
  const changed = new Set<string>();
  const notChecked: string[] = [];
  for (const { apiVersion, kind, metadata } of objects) {
    const { name, labels, annotations } = metadata;
    if (apiVersion !== "v1" || kind !== "Namespace" || name === undefined) continue;
    const before = all.get(name);
    const known = before?.metadata ?? { name, uid: `planned/${name}`, resourceVersion: "" };
    const after = {
      ...known,
      ...(labels === undefined ? {} : { labels: { ...known.labels, ...labels } }),
      ...(annotations === undefined ? {} : { annotations: { ...known.annotations, ...annotations } }),
    };
    if (before !== undefined && isDeepStrictEqual(known, after)) continue;
    const answer = await ask({ metadata: after }, before === undefined);
    if (answer.is === "refused") {
      refused.set(name, answer.message);
      continue;
    }
    if (answer.is === "notChecked") notChecked.push(`namespace ${name}: ${answer.why}`);
    all.set(name, answer.is === "admitted" ? answer.object : { metadata: after });
    changed.add(name);
  }
  return { after: [...all.values()], refused, changed, notChecked };
}
