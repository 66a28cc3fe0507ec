import { randomBytes } from "node:crypto";
import { expect, onTestFinished } from "vitest";
import { apiRequest } from "../clusters/api-request.ts";
import type { Cluster } from "../clusters/types.ts";
import { isOnRealNodes } from "./place-of-file.ts";
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
 * it, and deletes it when the test has ended. Deletion is not waited for. Where no container runs, the host's pods go at once.
 */
export async function freshNamespace(
  clusters: Cluster | readonly Cluster[],
  options: NamespaceOptions = {},
): Promise<string> {
  const { prefix = "test", labels = {}, annotations = {}, onFinished = onTestFinished } = options;
  const name = `${prefix}-${randomBytes(4).toString("hex")}`;
  const all = "name" in clusters ? [clusters] : clusters;
  onFinished(async () => {
    await Promise.all(all.map((cluster) => remove(cluster, name)));
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

async function remove(cluster: Cluster, name: string): Promise<void> {
  const namespace = `/api/v1/namespaces/${name}`;
  await apiRequest(cluster, "DELETE", namespace);
  const { testPath = "" } = expect.getState();
  if (cluster.name !== "host" || isOnRealNodes(testPath)) return;
  // Kubernetes would begin with them seconds later, and the next test wait for them. Nobody makes new ones there any more.
  await apiRequest(cluster, "DELETE", `${namespace}/pods?gracePeriodSeconds=0`, { timeoutMs: 60_000 });
}
