import { DELEGATE_FINALIZER, providerIdOf, VIRTUAL_NODE_LABEL, virtualNodeName } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { nodes, pods } from "../../kube/resources.ts";
import { counted, some } from "../counted.ts";
import { Failure } from "../failure.ts";
import { isVirtualNodeOf } from "../member/remove-cluster.ts";
import { drainNode, drainTimedOut, setCordon } from "../proxies/drain.ts";
import { listProxies, podName, unfinished } from "../proxies/list.ts";
import { dropFinalizer } from "../removal.ts";
import type { UnjoinContext, UnjoinOptions } from "./options.ts";

/**
 * Cordons the virtual node and ends what is on it; refuses first when something runs there that nobody asked to end. Without
 * `drain` and `force` a node that was not cordoned is so afterwards only when it is empty. A node of that name which is not
 * Legation's is left alone. Resolves to whether one is.
 */
export async function emptyNode(options: UnjoinOptions, context: UnjoinContext): Promise<boolean> {
  const { name, drain, force, timeoutMs } = options;
  const { host, signal, report } = context;
  const node = virtualNodeName(name);
  const found = await host.find(nodes, { name: node }, { signal });
  if (found !== undefined && !isVirtualNodeOf(found, name)) {
    report(
      `${host.cluster}: Node ${node} is not Legation's (its label ${VIRTUAL_NODE_LABEL} is not ${name}, and its ` +
        `spec.providerID not ${providerIdOf(name)}) and stays as it is`,
    );
    return true;
  }
  const wasCordoned = found?.spec?.unschedulable === true;
  let rest: readonly Stored<Pod>[];
  try {
    rest = await cordonAndDrain(node, options, context);
    if (rest.length > 0 && !force) throw drainTimedOut(name, rest, timeoutMs);
  } catch (error) {
    if (!wasCordoned && !drain && !force) await takeBackCordon(node, context);
    throw error;
  }
  if (rest.length === 0) return false;
  // The controller does not do it; the admission policy lets nobody else take this finalizer off.
  const controller = await context.asController();
  for (const proxy of rest) await dropFinalizer(controller, pods, proxy, DELEGATE_FINALIZER, signal);
  report(`${host.cluster}: ${counted(rest.length)} released in the controller's place`);
  return false;
}

/** Resolves to the pods that had not ended in time. */
async function cordonAndDrain(
  node: string,
  { name, drain, force, timeoutMs }: UnjoinOptions,
  { host, signal, report }: UnjoinContext,
): Promise<readonly Stored<Pod>[]> {
  // Cordoned before looking: no pod can come in between.
  await setCordon(host, node, true, signal);
  const proxies = await listProxies(host, { node, signal });
  const running = unfinished(proxies);
  if (running.length > 0 && !drain && !force) {
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem: `${counted(running.length)} ${running.length === 1 ? "runs" : "run"} there: ${some(running.map(podName))}`,
      remedy: "move them with --drain (their controllers replace them), or --force when the member is gone for good",
    });
  }
  const { length: left } = proxies;
  if (left > 0) {
    report(`${host.cluster}: waiting until ${counted(left)} on Node ${node} ${left === 1 ? "is" : "are"} gone`);
  }
  return await drainNode(host, node, {
    timeoutMs: force ? Math.min(timeoutMs, 10_000) : timeoutMs,
    force,
    signal,
    report,
  });
}

const UNCORDON_TIMEOUT_MS = 10_000;

/** Also after an interruption, which has ended the command's own signal. */
async function takeBackCordon(node: string, { host, report }: UnjoinContext): Promise<void> {
  try {
    await setCordon(host, node, false, AbortSignal.timeout(UNCORDON_TIMEOUT_MS));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    report(`${host.cluster}: Node ${node} stays cordoned (${why}): write \`kubectl uncordon ${node}\``);
  }
}
