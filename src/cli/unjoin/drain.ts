import { DELEGATE_FINALIZER, virtualNodeName } from "../../api/keys.ts";
import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { counted, countedAre } from "../../api/wording.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { deniedRight } from "../../kube/messages.ts";
import { nodes, pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import { WHOLE_SELECTOR } from "../../whole/jobs/kind.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { countsOf, type Finishing, type FoundWhole, unfinishedText, wholeName } from "../member/delegated.ts";
import { isVirtualNodeOf } from "../member/virtual-node.ts";
import { Failure } from "../shared/failure.ts";
import { listProxies, namespacedName, unfinished } from "../shared/reading.ts";
import { dropFinalizer, remove } from "../shared/removal.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { until, type WaitOptions } from "../shared/wait.ts";

export interface UnjoinOptions {
  readonly name: string;
  readonly drain: boolean;
  /** Does not wait for the member, which is gone for good. */
  readonly force: boolean;
  readonly timeoutMs: number;
}

export interface UnjoinContext extends HostContext {
  /** The member with an administrator's rights, from --member-kubeconfig. */
  readonly member: Connection | undefined;
  /** Opens the host as the controller, by impersonation. */
  readonly asController: () => Promise<ClusterClient>;
}

interface DrainOptions extends Pick<HostContext, "signal" | "report"> {
  readonly timeoutMs: number;
  /** Deletes with grace 0 instead of evicting, since the member will not report the pods' end. */
  readonly force: boolean;
  readonly clock?: Clock;
}

// Concurrent evictions and deletions.
const PODS_AT_ONCE = 8;

/** Evicts every running proxy of a node, and deletes the finished ones. Resolves to the pods that are left on timeout. */
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
      report(`${namespacedName(proxy)} ${isTerminal(proxy) || force ? "deleted" : "evicted"}`);
    } else if (blocked.get(uid) !== refusal) {
      blocked.set(uid, refusal);
      report(`${namespacedName(proxy)} waits: ${refusal}`);
    }
  };
  await until(
    async (leftMs) => {
      rest = await listProxies(host, { node, signal });
      const due = rest.filter(
        ({ metadata: { uid, deletionTimestamp } }) => !asked.has(uid) && (deletionTimestamp === undefined || force),
      );
      for (let first = 0; first < due.length; first += PODS_AT_ONCE) {
        // Forced deletions take no time.
        if (!force && leftMs() <= 0) break;
        await Promise.all(due.slice(first, first + PODS_AT_ONCE).map(ask));
      }
      return rest.length === 0;
    },
    { timeoutMs, intervalMs: 1000, signal, ...options },
  );
  return rest;
}

/** Evicts or deletes one proxy. Resolves to the reason why that is refused for now. */
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

/** Reports whether the refusal of an eviction may pass, as kubectl drain judges it: budgets (429, 500), webhooks (403). */
function isOfThisPod(error: KubeError): boolean {
  if (error.code === "Forbidden") return deniedRight(error.detail)?.resource !== "pods/eviction";
  return error.code === "TooManyRequests" || error.code === "ServerError";
}

/** Drains the virtual node, and with `drain` waits for what runs whole. Otherwise refuses what has not finished. */
export async function emptyMember(options: UnjoinOptions, context: UnjoinContext): Promise<void> {
  const { name, drain, force, timeoutMs } = options;
  const { host, signal, report } = context;
  const node = virtualNodeName(name);
  const found = await host.find(nodes, { name: node }, { signal });
  const isOwn = found === undefined || isVirtualNodeOf(found, name);
  if (!isOwn)
    report(`${host.cluster}: Node ${node} is not Legation's, by label and spec.providerID, and stays as it is`);
  const list = async (): Promise<Finishing> => {
    const [proxies, whole] = await Promise.all([
      isOwn ? listProxies(host, { node, signal }) : [],
      unfinishedWhole(host, name, signal),
    ]);
    const running = { pods: unfinished(proxies), whole };
    if (drain || force || !hasAny(running)) return { pods: proxies, whole };
    const remedy = "move them with --drain (their controllers replace them), or";
    throw stillThere("refused", name, running, { does: "runs there", many: "run there", remedy });
  };
  await list();
  if (found !== undefined && isOwn) {
    const body = { metadata: { uid: found.metadata.uid }, spec: { unschedulable: true } };
    await host.patch(nodes, { name: node }, { type: "merge", body }, { signal });
    report(`${host.cluster}: Node ${node} is cordoned`);
  }
  // Nothing comes after the cordon, so these lists are complete.
  const { pods: proxies, whole } = await list();
  if (proxies.length > 0) {
    report(`${host.cluster}: waiting until ${countedAre(proxies.length, `on Node ${node}`)} gone`);
  }
  const waits = whole.length > 0 && !force;
  if (waits) report(`${host.cluster}: waiting for ${countsOf({ whole })} in ${name} to finish`);
  else if (whole.length > 0) report(`${host.cluster}: ${unfinishedText({ whole }, END_AS_FAILED)}`);
  const [rest, running] = await Promise.all([
    isOwn ? drainNode(host, node, { timeoutMs, force, signal, report }) : [],
    waits ? waitForWhole(host, name, { timeoutMs, signal, report }) : whole,
  ]);
  const left = { pods: rest, whole: running };
  if (!force && hasAny(left)) {
    const late = `had not ended after ${timeoutMs / 1000} s`;
    const remedy = "its virtual node stays cordoned; run the command again, with a longer --timeout, or";
    throw stillThere("notReady", name, left, { does: late, many: late, remedy });
  }
  if (rest.length === 0) return;
  // The admission policy lets only the controller's account remove this finalizer.
  const controller = await context.asController();
  for (const proxy of rest) await dropFinalizer(controller, pods, proxy, DELEGATE_FINALIZER, signal);
  report(`${host.cluster}: ${counted(rest.length)} released in the controller's place`);
}

const END_AS_FAILED = { does: "ends as Failed (ClusterRemoved)", many: "end as Failed (ClusterRemoved)" };
const WHOLE_FAIL =
  "; whole Jobs do not move: --drain waits until they have finished; if the member leaves before, they end as Failed (ClusterRemoved)";

function stillThere(
  exit: "refused" | "notReady",
  name: string,
  left: Finishing,
  { remedy, ...words }: { readonly does: string; readonly many: string; readonly remedy: string },
): Failure {
  return new Failure(exit, {
    object: `Cluster ${name}`,
    problem: unfinishedText(left, words),
    remedy: `${remedy} --force when the member is gone for good${left.whole.length > 0 ? WHOLE_FAIL : ""}`,
  });
}

function hasAny({ pods: proxies, whole }: Finishing): boolean {
  return proxies.length + whole.length > 0;
}

// Each poll lists the whole Jobs of all members.
const POLL_MS = 2000;

/** Lists what the member has whole, or has a share of, and what has not finished there. */
export async function unfinishedWhole(
  host: ClusterClient,
  member: string,
  signal: AbortSignal,
): Promise<readonly FoundWhole[]> {
  const found = WHOLE_TYPES.map(async (type) => {
    const objects = await listAll(host, type.resource, { labelSelector: WHOLE_SELECTOR, signal });
    const isThere = (one: KubeObject): boolean => type.membersOf(one).includes(member) && !type.isFinished(one);
    const open = objects.filter((one) => isThere(one) && !type.isFinishedIn(one, member));
    return open.map((object) => ({ type, object }));
  });
  return (await Promise.all(found)).flat();
}

/** Waits until what the member has whole has finished. Resolves to the rest on timeout. */
export async function waitForWhole(
  host: ClusterClient,
  member: string,
  { signal, report, ...options }: WaitOptions & Pick<HostContext, "signal" | "report">,
): Promise<readonly FoundWhole[]> {
  let rest = await unfinishedWhole(host, member, signal);
  await until(
    async () => {
      const before = rest.map(wholeName);
      rest = await unfinishedWhole(host, member, signal);
      const left = new Set(rest.map(wholeName));
      for (const name of before) if (!left.has(name)) report(`${name} has finished`);
      return left.size === 0;
    },
    { intervalMs: POLL_MS, signal, ...options },
  );
  return rest;
}
