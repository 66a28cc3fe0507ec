import { DELEGATE_UID_ANNOTATION, virtualNodeName } from "../api/keys.ts";
import { type ObjectRef, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import { isInShard, type Shard } from "../api/shards.ts";
import type { Member } from "../clusters/member.ts";
import type { Registry } from "../clusters/registry.ts";
import { isKubeError } from "../kube/errors.ts";
import { pods } from "../kube/resources.ts";
import { everRan, isTerminal } from "../pods/pod-state.ts";
import type { ReadStore } from "../runtime/store.ts";

export interface PodSource {
  readonly registry: Pick<Registry, "member" | "problem">;
  readonly proxies: ReadStore<Pod>;
  readonly proxiesOn: (node: string) => readonly Stored<Pod>[];
  /** The pods that are watched in members. Proxies are those of all shards. */
  readonly shard: Shard;
}

export interface PodRef extends ObjectRef {
  readonly namespace: string;
  /** Absent in most requests. */
  readonly uid?: string;
}

/** `notFound` and `notRunning` carry the kubelet's messages. `unavailable` says why the member cannot be asked. */
export type Lookup =
  | { readonly member: Member; readonly proxyUid: string; readonly problem?: never }
  | { readonly problem: "notFound" | "notRunning" | "unavailable"; readonly message: string };

/**
 * Finds the delegate of a proxy on the node of `cluster`: the pod whose uid it records, never another of that name. Port-forward names no
 * container, and finds no pod that has ended: its sandbox may still take connections, which nothing answers.
 */
export async function lookUpPod(
  source: PodSource,
  cluster: string,
  { namespace, name, uid }: PodRef,
  container?: string,
): Promise<Lookup> {
  const key = objectKey({ namespace, name });
  const missing = { problem: "notFound", message: `pod "${name}_${namespace}" does not exist` } as const;
  const proxy = source.proxies.get(key);
  if (proxy === undefined || proxy.spec?.nodeName !== virtualNodeName(cluster)) return missing;
  if (uid !== undefined && uid !== proxy.metadata.uid) return missing;
  const notRunning = { problem: "notRunning", message: whyNotRunning(proxy, container) } as const;
  if (container === undefined && isTerminal(proxy)) return notRunning;
  const member = source.registry.member(cluster);
  if (member === undefined) return unavailable(cluster, source.registry.problem(cluster) ?? "it is not connected");
  // A single failed probe proves little, so the member is asked anyway, like a node that is not Ready.
  const { reachable, message = "it does not answer" } = member.probed;
  if (!reachable) return unavailable(cluster, message);
  if (!member.read) return unavailable(cluster, "its pods are still being read: try again");
  const recorded = proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION];
  try {
    const delegate = isInShard(source.shard, namespace)
      ? member.delegates.get(key)
      : await member.client.find(pods, { namespace, name });
    if (recorded !== undefined && delegate?.metadata.uid === recorded) {
      return { member, proxyUid: proxy.metadata.uid };
    }
  } catch (error) {
    if (!isKubeError(error)) throw error;
    return unavailable(cluster, error.detail);
  }
  return isTerminal(proxy) ? missing : notRunning;
}

/** Returns the message of validateContainerLogStatus (pkg/kubelet/kubelet_pods.go). */
function whyNotRunning(proxy: Stored<Pod>, container: string | undefined): string {
  const pod = `pod "${proxy.metadata.name}"`;
  const subject = container === undefined ? pod : `container "${container}" in ${pod}`;
  if (everRan(proxy)) return `${subject} is not available`;
  const { initContainers = [] } = proxy.spec ?? {};
  const isFirst = initContainers.length === 0 || initContainers.some(({ name }) => name === container);
  return `${subject} is waiting to start: ${isFirst ? "ContainerCreating" : "PodInitializing"}`;
}

function unavailable(cluster: string, detail: string): Lookup {
  return { problem: "unavailable", message: `cluster ${cluster} cannot be reached: ${detail}` };
}
