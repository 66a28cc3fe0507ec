import { randomBytes } from "node:crypto";
import { Agent } from "node:https";
import { expect, onTestFinished } from "vitest";
import { collectionPath } from "../../../src/kube/internal/resource-paths.ts";
import { events, pods } from "../../../src/kube/resources.ts";
import { apiRequest } from "../clusters/api-request.ts";
import type { Cluster } from "../clusters/types.ts";
import { isOnRealNodes, needsPristine } from "./place-of-file.ts";
import { tellPods } from "./tell-pods.ts";
import { eventually } from "./wait.ts";
import { WORKLOADS } from "./workloads.ts";

/** The argument of vitest's `onTestFinished` callbacks. */
interface Ended {
  readonly task: { readonly result?: { readonly state: string } };
}

/** Settings of a test's namespace. */
export interface NamespaceOptions {
  /** Start of the name; default `test`. */
  readonly prefix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Deletes the namespace itself, because its contents outlive pods and affect other tests. Default false. */
  readonly deleted?: boolean;
  /** Called when it can be taken down; default: vitest's `onTestFinished`. Pass `afterFile` outside a test. */
  readonly onFinished?: (cleanUp: (ended?: Ended) => Promise<void>) => void;
}

/**
 * Makes a namespace with a name that no other test has, in each of these clusters, and waits until pods can be made in
 * it. When the test has ended it is emptied, or deleted where its file needs that; neither is waited for.
 */
export async function freshNamespace(
  clusters: Cluster | readonly Cluster[],
  options: NamespaceOptions = {},
): Promise<string> {
  const { prefix = "test", labels = {}, annotations = {}, deleted = false, onFinished = onTestFinished } = options;
  const name = `${prefix}-${randomBytes(4).toString("hex")}`;
  const all = "name" in clusters ? [clusters] : clusters;
  onFinished(async (ended) => {
    if (ended?.task.result?.state === "fail") await Promise.all(all.map((cluster) => tellPods(cluster, name)));
    const takeDown = deleted || !mayStay() ? remove : empty;
    await Promise.all(all.map((cluster) => takeDown(cluster, name)));
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

/**
 * Reports whether a namespace without pods may stay until its cluster goes: its deletion is some 35 requests. The exceptions
 * show that Legation has left, or have volumes, links and cgroups behind their pods.
 */
function mayStay(): boolean {
  const { testPath } = expect.getState();
  return testPath !== undefined && !isOnRealNodes(testPath) && !needsPristine(testPath);
}

// Made by others of these, which go before them.
const OWNED: ReadonlySet<string> = new Set(["ReplicaSet", "Job"]);

/** Deletes a namespace's pods, the workloads that would make new ones, and the events about them. */
async function empty(cluster: Cluster, name: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const workloads = [...WORKLOADS].sort((a, b) => Number(OWNED.has(a.kind)) - Number(OWNED.has(b.kind)));
  // Pods here have no container that needs time to end.
  const query = "?propagationPolicy=Background&gracePeriodSeconds=0";
  const paths = [...workloads, pods, events].map((resource) => collectionPath(resource, name) + query);
  try {
    for (const path of paths) await apiRequest(cluster, "DELETE", path, { agent, timeoutMs: 60_000 });
  } finally {
    agent.destroy();
  }
}

async function remove(cluster: Cluster, name: string): Promise<void> {
  const namespace = `/api/v1/namespaces/${name}`;
  await apiRequest(cluster, "DELETE", namespace);
  const { testPath = "" } = expect.getState();
  if (cluster.name !== "host" || isOnRealNodes(testPath)) return;
  // Kubernetes begins with the pods seconds later, and the next test would wait for them. No controller makes new ones now.
  await apiRequest(cluster, "DELETE", `${namespace}/pods?gracePeriodSeconds=0`, { timeoutMs: 60_000 });
}
