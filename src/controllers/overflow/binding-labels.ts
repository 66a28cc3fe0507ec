import { z } from "zod";
import { OVERFLOW_LABEL_VALUE, PROXY_LABEL, virtualNodeName } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { pods } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";

// From this minor version of 1 on, API servers copy a Binding's labels to the pod (KEP-4742, on by default).
const FIRST_MINOR = 35;
const versionAnswer = z.object({ major: z.string(), minor: z.string() });

/** Reports whether the host's API server makes a pod a proxy in its Binding. Rejects with KubeError. */
export async function bindsLabels(host: ClusterClient, signal: AbortSignal): Promise<boolean> {
  return copiesLabels(await host.raw({ method: "GET", path: "/version", signal }));
}

export function copiesLabels(answer: unknown): boolean {
  const parsed = versionAnswer.safeParse(answer);
  if (!parsed.success) return false;
  // Vendors write `35+`.
  const [major, minor] = [parsed.data.major, parsed.data.minor].map((text) => Number.parseInt(text, 10));
  return (major ?? 0) > 1 || (major === 1 && (minor ?? 0) >= FIRST_MINOR);
}

/** Pods that their Bindings did not make proxies: no watch of Legation selects them, and no cluster would run them. */
export class UnmarkedPods {
  readonly #pods = new Map<ObjectKey, Stored<Pod>>();

  get(key: ObjectKey): Stored<Pod> | undefined {
    return this.#pods.get(key);
  }

  on(member: string): ObjectKey[] {
    const node = virtualNodeName(member);
    return [...this.#pods].flatMap(([key, { spec }]) => (spec?.nodeName === node ? [key] : []));
  }

  expect(pod: Stored<Pod>, member: string): void {
    const spec = { containers: [], ...pod.spec, nodeName: virtualNodeName(member) };
    this.#pods.set(objectKey(pod.metadata), { ...pod, spec });
  }

  forget(key: ObjectKey): void {
    this.#pods.delete(key);
  }

  /** Reads the pods that earlier leaders left unmarked. Rejects with KubeError. */
  async find(host: ClusterClient, members: readonly string[], signal: AbortSignal): Promise<ObjectKey[]> {
    for (const member of members) {
      const { items } = await host.list(pods, {
        labelSelector: `${PROXY_LABEL}=${OVERFLOW_LABEL_VALUE}`,
        fieldSelector: `spec.nodeName=${virtualNodeName(member)}`,
        dropManagedFields: true,
        signal,
      });
      for (const pod of items) if (memberOf(pod) !== undefined) this.#pods.set(objectKey(pod.metadata), pod);
    }
    return [...this.#pods.keys()];
  }
}
