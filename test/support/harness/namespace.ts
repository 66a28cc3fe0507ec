import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import { apiRequest } from "../clusters/api-request.ts";
import type { Cluster } from "../clusters/types.ts";
import { eventually } from "./wait.ts";

/** How a test's namespace is made. */
export interface NamespaceOptions {
  /** Start of the name; default `test`. */
  readonly prefix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Called when it can be deleted; default: vitest's `onTestFinished`. Pass `afterFile` outside a test. */
  readonly onFinished?: (cleanUp: () => Promise<void>) => void;
}

/**
 * Makes a namespace with a name that no other test has, in each of these clusters, waits until pods can be made in
 * it, and deletes it when the test has ended. Deletion is not waited for.
 */
export async function freshNamespace(
  clusters: Cluster | readonly Cluster[],
  options: NamespaceOptions = {},
): Promise<string> {
  const { prefix = "test", labels = {}, annotations = {}, onFinished = onTestFinished } = options;
  const name = `${prefix}-${randomBytes(4).toString("hex")}`;
  const all = "name" in clusters ? [clusters] : clusters;
  onFinished(async () => {
    await Promise.all(all.map((cluster) => apiRequest(cluster, "DELETE", `/api/v1/namespaces/${name}`)));
  });
  await Promise.all(
    all.map(async (cluster) => {
      const body = { apiVersion: "v1", kind: "Namespace", metadata: { name, labels, annotations } };
      const answer = await apiRequest(cluster, "POST", "/api/v1/namespaces", { body });
      if (answer.status !== 201) throw new Error(`${cluster.name}: namespace ${name} was refused: ${answer.text}`);
      const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
      await eventually(async () => (await apiRequest(cluster, "GET", account)).status === 200, {
        what: `${cluster.name}: the default service account of ${name}`,
        intervalMs: 20,
      });
    }),
  );
  return name;
}
