import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import { nodes, pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/phase.ts";
import type { Clock } from "../../runtime/clock.ts";
import { counted, some } from "../counted.ts";
import { Failure } from "../failure.ts";
import { remove } from "../removal.ts";
import { waitFor } from "../wait.ts";
import { listProxies, podName } from "./list.ts";

/** Sets or clears a node's cordon; false when there is no such node. */
export async function setCordon(
  host: ClusterClient,
  node: string,
  unschedulable: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await host.patch(nodes, { name: node }, { type: "merge", body: { spec: { unschedulable } } }, { signal });
    return true;
  } catch (error) {
    if (isKubeError(error, "NotFound")) return false;
    throw error;
  }
}

export interface DrainOptions {
  readonly timeoutMs: number;
  /** Delete with grace 0 instead of evicting: the member will never say that they ended. */
  readonly force: boolean;
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
  readonly clock?: Clock;
}

// Each costs an API server some milliseconds, and a slow one longer.
const PODS_AT_ONCE = 8;

/**
 * Ends every proxy on a node: those that run through the eviction API, so that PodDisruptionBudgets hold, finished ones
 * by deletion, as Kubernetes does with the pods of a node that is gone. Resolves when none is left, to the rest otherwise.
 */
export async function drainNode(
  host: ClusterClient,
  node: string,
  { timeoutMs, force, signal, report, ...options }: DrainOptions,
): Promise<readonly Stored<Pod>[]> {
  const asked = new Set<string>();
  const blocked = new Map<string, string>();
  let rest: readonly Stored<Pod>[] = [];
  const ask = async (proxy: Stored<Pod>): Promise<void> => {
    const { uid } = proxy.metadata;
    const refusal = await end(host, proxy, force, signal);
    if (refusal === undefined) {
      asked.add(uid);
      report(`${podName(proxy)} ${isTerminal(proxy) || force ? "deleted" : "evicted"}`);
    } else if (blocked.get(uid) !== refusal) {
      blocked.set(uid, refusal);
      report(`${podName(proxy)} waits: ${refusal}`);
    }
  };
  await waitFor(
    async (leftMs) => {
      rest = await listProxies(host, { node, signal });
      const due = rest.filter(
        ({ metadata: { uid, deletionTimestamp } }) => !asked.has(uid) && (deletionTimestamp === undefined || force),
      );
      for (let first = 0; first < due.length; first += PODS_AT_ONCE) {
        // Nothing holds a forced deletion up.
        if (!force && leftMs() <= 0) break;
        await Promise.all(due.slice(first, first + PODS_AT_ONCE).map(ask));
      }
      return rest.length === 0 ? true : undefined;
    },
    { timeoutMs, intervalMs: 1000, signal, ...options },
  );
  return rest;
}

/** Ends one proxy; the text says why it may not end yet. */
async function end(
  host: ClusterClient,
  proxy: Stored<Pod>,
  force: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { name, namespace = "", uid } = proxy.metadata;
  if (force || isTerminal(proxy)) {
    await remove(host, pods, { namespace, name }, { uid, signal, ...(force ? { gracePeriodSeconds: 0 } : {}) });
    return undefined;
  }
  try {
    const eviction = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { namespace, name },
      deleteOptions: { preconditions: { uid } },
    };
    await host.createSubresource(pods, { namespace, name }, "eviction", eviction, { signal });
    return undefined;
  } catch (error) {
    if (isKubeError(error, "NotFound", "Conflict")) return undefined;
    if (isKubeError(error) && isOfThisPod(error)) return error.detail;
    throw error;
  }
}

// The authorizer's message: no pod of that namespace can be evicted.
const NO_RIGHT = /\bcannot create resource "pods\/eviction"/;

/**
 * Whether an eviction was refused for this pod's own reasons, which may pass, as to kubectl drain: a PodDisruptionBudget (429), several of
 * them (500), a namespace that is being deleted or an admission that denies it (403).
 */
function isOfThisPod(error: KubeError): boolean {
  if (error.code === "Forbidden") return !NO_RIGHT.test(error.detail);
  return error.code === "TooManyRequests" || error.code === "ServerError";
}

/** The failure of a drain that did not end in time. */
export function drainTimedOut(cluster: string, rest: readonly Stored<Pod>[], timeoutMs: number): Failure {
  return new Failure("notReady", {
    object: `Cluster ${cluster}`,
    problem: `${counted(rest.length)} had not ended after ${timeoutMs / 1000} s: ${some(rest.map(podName))}`,
    remedy:
      "its virtual node stays cordoned; run the command again (a longer --timeout, or --force when the member is gone for good)",
  });
}
