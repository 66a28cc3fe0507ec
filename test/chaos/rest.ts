import { jsonEqual } from "../../src/api/json.ts";
import {
  CLUSTER_ANNOTATION,
  DELEGATE_UID_ANNOTATION,
  GROUP_ANNOTATION,
  PROXY_LABEL,
  PROXY_LABEL_VALUE,
} from "../../src/api/keys.ts";
import type { Pod, Stored } from "../../src/api/kubernetes.ts";
import { configMaps, namespaces } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { isDeleting, isTerminal } from "../../src/pods/pod-state.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { waitsInQueue } from "./queues/rules.ts";
import type { Scene } from "./scene.ts";

/** Includes pods that have overflowed, which keep the name of their scheduler. */
function isProxy({ metadata }: Stored<Pod>): boolean {
  return metadata.labels?.[PROXY_LABEL] === PROXY_LABEL_VALUE;
}

/** Returns the remaining problems. `lostData`: claims were deleted in a member, so their pods wait forever. */
export async function restless(scene: Scene, lostData: boolean): Promise<string[]> {
  const { clients, namespace, passing } = scene;
  const { host, west, east } = clients;
  const [all, ...held] = await Promise.all([host, west, east].map((client) => podsOf(client, namespace)));
  const alone = (all ?? []).filter((pod) => !isProxy(pod));
  const proxies = (all ?? [])
    .filter((pod) => isProxy(pod) && !waitsInQueue(pod))
    .filter((pod) => !(lostData && usesClaim(pod)));
  const delegates = held.flat().filter((pod) => ownerOf(pod) !== undefined && !(lostData && usesClaim(pod)));
  return [
    ...alone.flatMap(notRunning),
    ...delegation(proxies, delegates),
    ...groups(proxies),
    ...(await copies(scene, proxies)),
    ...(await Promise.all(passing.map((name) => remains(scene, name)))).flat(),
  ];
}

function usesClaim({ spec }: Pod): boolean {
  return spec?.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined) ?? false;
}

function notRunning(pod: Stored<Pod>): string[] {
  const { name } = pod.metadata;
  if (isDeleting(pod)) return [`${name}: is still being deleted`];
  return isTerminal(pod) || pod.status?.phase === "Running" ? [] : [`${name}: ${pod.status?.phase}`];
}

function delegation(proxies: readonly Stored<Pod>[], held: readonly Stored<Pod>[]): string[] {
  const byUid = new Map(proxies.map((proxy) => [proxy.metadata.uid, proxy]));
  const wrong: string[] = proxies.flatMap(notRunning);
  const delegates = new Map<string, number>();
  for (const delegate of held) {
    const { name, uid } = delegate.metadata;
    const proxy = byUid.get(ownerOf(delegate)?.uid ?? "");
    if (proxy === undefined) {
      wrong.push(`${name}: a delegate without a proxy`);
      continue;
    }
    delegates.set(proxy.metadata.uid, (delegates.get(proxy.metadata.uid) ?? 0) + 1);
    if (proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION] !== uid) wrong.push(`${name}: not the recorded delegate`);
    if (proxy.status?.phase !== delegate.status?.phase) {
      wrong.push(`${name}: ${proxy.status?.phase}, and its delegate ${delegate.status?.phase}`);
    }
  }
  for (const proxy of proxies) {
    const { name, uid } = proxy.metadata;
    if (!isTerminal(proxy) && delegates.get(uid) !== 1) wrong.push(`${name}: ${delegates.get(uid) ?? 0} delegates`);
  }
  return wrong;
}

function groups(proxies: readonly Stored<Pod>[]): string[] {
  const places = new Map<string, Set<string>>();
  for (const proxy of proxies) {
    const { annotations = {} } = proxy.metadata;
    const { [GROUP_ANNOTATION]: group, [CLUSTER_ANNOTATION]: member } = annotations;
    if (group === undefined || member === undefined || isTerminal(proxy) || isDeleting(proxy)) continue;
    places.set(group, (places.get(group) ?? new Set()).add(member));
  }
  return [...places].flatMap(([group, members]) => (members.size > 1 ? [`${group} is in ${[...members]}`] : []));
}

/** Each member's copy of a ConfigMap that a pod there reads is as the host's. */
async function copies({ clients, namespace }: Scene, proxies: readonly Stored<Pod>[]): Promise<string[]> {
  const [wanted, ...there] = await Promise.all(
    [clients.host, clients.west, clients.east].map((client) => client.list(configMaps, { namespace })),
  );
  const found = new Map(["west", "east"].map((name, index) => [name, there[index]?.items ?? []]));
  return proxies.flatMap((proxy) => {
    const member = proxy.metadata.annotations?.[CLUSTER_ANNOTATION] ?? "";
    const names = proxy.spec?.volumes?.flatMap(({ configMap }) => configMap?.name ?? []) ?? [];
    if (isTerminal(proxy)) return [];
    return names.flatMap((name) => {
      const [source, copy] = [wanted?.items, found.get(member)].map((items) =>
        items?.find(({ metadata }) => metadata.name === name),
      );
      return jsonEqual(source?.data, copy?.data) ? [] : [`ConfigMap ${name} in ${member} is not the host's`];
    });
  });
}

/** Returns the leftovers of a namespace that the host had for a while. */
async function remains({ clients: { host, west, east } }: Scene, name: string): Promise<string[]> {
  const found = await host.find(namespaces, { name });
  const left = (await Promise.all([west, east].map((client) => podsOf(client, name)))).flat();
  return [
    ...(found === undefined ? [] : [`namespace ${name} does not go: ${JSON.stringify(found.status)}`]),
    ...left.map(({ metadata }) => `${name}/${metadata.name} has been left behind`),
  ];
}
