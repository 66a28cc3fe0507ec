import { DELEGATE_UID_ANNOTATION, virtualNodeName } from "../api/keys.ts";
import { type ObjectRef, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import type { Member } from "../clusters/member.ts";
import type { Registry } from "../clusters/registry.ts";
import { hasStarted, isTerminal } from "../pods/phase.ts";
import type { ReadStore } from "../runtime/store.ts";

/** What the kubelet API knows of the host and its members. */
export interface PodSource {
  readonly registry: Pick<Registry, "member" | "problem">;
  /** The host's proxies. */
  readonly proxies: () => ReadStore<Pod>;
  readonly proxiesOn: (node: string) => readonly Stored<Pod>[];
}

/** Names a pod as a kubelet's path does. */
export interface PodRef extends ObjectRef {
  readonly namespace: string;
  /** Of the pod on the host; absent in most requests. */
  readonly uid?: string;
}

/**
 * The delegate that a request goes to. `notFound` and `notRunning`: kubelet's own words for a pod that is not on the node, and
 * for one that is, without a container at present; `unavailable`: why nobody can tell now.
 */
export type Lookup =
  | { readonly member: Member; readonly proxyUid: string; readonly problem?: never }
  | { readonly problem: "notFound" | "notRunning" | "unavailable"; readonly message: string };

/**
 * Finds the member of a proxy that is bound to the node of `cluster`, when its delegate is there: the one whose uid the
 * proxy records, and no other pod of that name.
 */
export function lookUp(
  source: PodSource,
  cluster: string,
  { namespace, name, uid }: PodRef,
  container?: string,
): Lookup {
  const key = objectKey({ namespace, name });
  const missing = { problem: "notFound", message: `pod "${name}_${namespace}" does not exist` } as const;
  const proxy = source.proxies().get(key);
  if (proxy === undefined || proxy.spec?.nodeName !== virtualNodeName(cluster)) return missing;
  if (uid !== undefined && uid !== proxy.metadata.uid) return missing;
  const member = source.registry.member(cluster);
  if (member === undefined) return unavailable(cluster, source.registry.problem(cluster) ?? "it is not connected");
  // A probe that failed once says little: the member is asked all the same, as a node that is not Ready is.
  const { reachable, message = "it does not answer" } = member.probed;
  if (!reachable) return unavailable(cluster, message);
  if (!member.read) return unavailable(cluster, "its pods are still being read: try again");
  const recorded = proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION];
  if (recorded !== undefined && member.delegates.get(key)?.metadata.uid === recorded) {
    return { member, proxyUid: proxy.metadata.uid };
  }
  return isTerminal(proxy) ? missing : { problem: "notRunning", message: whyNotRunning(proxy, container) };
}

/** As validateContainerLogStatus in pkg/kubelet/kubelet_pods.go says it. */
function whyNotRunning(proxy: Stored<Pod>, container: string | undefined): string {
  const pod = `pod "${proxy.metadata.name}"`;
  const subject = container === undefined ? pod : `container "${container}" in ${pod}`;
  if (hasStarted(proxy)) return `${subject} is not available`;
  const { initContainers = [] } = proxy.spec ?? {};
  const isFirst = initContainers.length === 0 || initContainers.some(({ name }) => name === container);
  return `${subject} is waiting to start: ${isFirst ? "ContainerCreating" : "PodInitializing"}`;
}

function unavailable(cluster: string, detail: string): Lookup {
  return { problem: "unavailable", message: `cluster ${cluster} cannot be reached: ${detail}` };
}
