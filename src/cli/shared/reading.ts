import { z } from "zod";
import type { Cluster } from "../../api/cluster.ts";
import { PROXY_LABEL, PROXY_LABEL_VALUE, SYSTEM_NAMESPACE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeNode, KubeObject, Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient, ListOptions, RequestOptions } from "../../kube/client.ts";
import { ignoring, isKubeError, type KubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { namespaces, nodes, pods, type Resource } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import { Failure } from "./failure.ts";
import { didYouMean } from "./suggestion.ts";

/** Waits for a read on behalf of a user. Rejects with a `Failure` that names the missing role, and what it is for. */
export async function asViewer<T>(reading: Promise<T>, purpose = ""): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    throw new Failure("failure", {
      object: error.cluster,
      problem: `you may not ${error.verb} ${error.target}${purpose}: ${error.detail}`,
      remedy: missingRole(error),
      cause: error,
    });
  }
}

/** The remedy for an account that may not read the whole host: manifests/rbac-viewer.yaml. */
export const BIND_VIEWER = "have your account bound to the ClusterRole legation-viewer, by a ClusterRoleBinding";

/** Returns the role to grant: the viewer's for the whole host, Kubernetes' `view` for one namespace. */
function missingRole({ namespace }: KubeError): string {
  return namespace === undefined
    ? BIND_VIEWER
    : "have your account bound to the ClusterRole view, by a RoleBinding in that namespace";
}

export function notOnHost(object: string): Failure {
  return new Failure("failure", {
    object,
    problem: "is not on the host",
    remedy: "check its name and namespace",
    flags: "-n",
  });
}

/** Returns the failure of a command whose member has not joined. `otherwise`: what to do if that is right. */
export function notJoined(name: string, clusters: readonly Stored<Cluster>[], otherwise?: string): Failure {
  const joined = clusters.map(({ metadata }) => metadata.name);
  const remedy = [didYouMean(name, joined), otherwise].filter((each) => each !== undefined).join(" Otherwise: ");
  return new Failure("refused", {
    object: `Cluster ${name}`,
    problem: `has not joined; ${joined.length === 0 ? "no cluster has" : `joined: ${joined.join(", ")}`}`,
    remedy: remedy === "" ? undefined : remedy,
  });
}

/** Lists the Clusters of the host. Rejects with `Failure` if Legation is not installed. */
export async function listClusters(host: ClusterClient, signal: AbortSignal): Promise<readonly Stored<Cluster>[]> {
  const found = await findClusters(host, signal);
  if (found !== undefined) return found;
  throw new Failure("refused", {
    object: host.cluster,
    problem: `Legation is not installed there: it does not serve ${clusters.plural}.${clusters.group}`,
    remedy: "run `legation install` first, or choose another host",
    flags: "--kubeconfig, --context",
  });
}

/** Lists the Clusters like `listClusters`. Resolves to undefined if Legation is not installed. */
export function findClusters(
  host: ClusterClient,
  signal: AbortSignal,
): Promise<readonly Stored<Cluster>[] | undefined> {
  return listServed(host, clusters, signal);
}

/** Lists the objects of a resource. Resolves to undefined if the host does not serve it. */
export async function listServed<T extends KubeObject>(
  host: ClusterClient,
  resource: Resource<T>,
  signal: AbortSignal,
): Promise<Stored<T>[] | undefined> {
  return await ignoring(listAll(host, resource, { dropManagedFields: true, signal }), "NotFound");
}

/** Returns a cluster's identity: the uid of its kube-system namespace, which lives as long as the cluster. */
export async function clusterId(client: ClusterClient, signal: AbortSignal): Promise<string> {
  const { metadata } = await client.get(namespaces, { name: "kube-system" }, { signal });
  return metadata.uid;
}

const version = z.looseObject({ gitVersion: z.string().regex(/^[\w.+-]{1,64}$/) });

/** Reads the version of an API server. Undefined if its answer has none. Rejects with KubeError. */
export async function readVersion(
  client: ClusterClient,
  { signal, timeoutMs }: RequestOptions,
): Promise<string | undefined> {
  return version.safeParse(await client.raw({ method: "GET", path: "/version", signal, timeoutMs })).data?.gitVersion;
}

export const OF_PROXIES: string = `${PROXY_LABEL}=${PROXY_LABEL_VALUE}`;

export function listProxies(
  host: ClusterClient,
  { node, signal }: { readonly node?: string; readonly signal: AbortSignal },
): Promise<Stored<Pod>[]> {
  return listAll(host, pods, {
    labelSelector: OF_PROXIES,
    dropManagedFields: true,
    signal,
    ...(node === undefined ? {} : { fieldSelector: `spec.nodeName=${node}` }),
  });
}

/** Lists the objects of all namespaces or, where the account may not, those of `names` that it may list. */
export async function listWhereAllowed<T extends KubeObject>(
  host: ClusterClient,
  resource: Resource<T>,
  names: readonly string[],
  options: ListOptions,
): Promise<{ readonly found: readonly Stored<T>[]; readonly isAll: boolean }> {
  const all = await readable(listAll(host, resource, options));
  if (all !== undefined) return { found: all, isAll: true };
  const parts = names.map((namespace) => readable(listAll(host, resource, { ...options, namespace })));
  return { found: (await Promise.all(parts)).flatMap((some) => some ?? []), isAll: false };
}

/** Lists all namespaces or, where the account may not, reads those of `names`. Rejects with KubeError if it may not read one of them. */
export async function listNamespaces(
  host: ClusterClient,
  names: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly found: readonly Stored<Namespace>[]; readonly isAll: boolean }> {
  const all = await readable(listAll(host, namespaces, { dropManagedFields: true, signal }));
  if (all !== undefined) return { found: all, isAll: true };
  const some = await Promise.all(names.map((name) => host.find(namespaces, { name }, { signal })));
  return { found: some.filter((namespace) => namespace !== undefined), isAll: false };
}

export function listVirtualNodes(host: ClusterClient, signal: AbortSignal): Promise<Stored<KubeNode>[]> {
  return listAll(host, nodes, { labelSelector: VIRTUAL_NODE_LABEL, signal });
}

export function unfinished(proxies: readonly Stored<Pod>[]): Stored<Pod>[] {
  return proxies.filter((proxy) => !isTerminal(proxy));
}

/** Returns `namespace/name` of a pod, Job or CronJob. */
export function namespacedName({ metadata }: Stored<KubeObject>): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** Resolves to undefined if the credentials do not permit the read. */
export function readable<T>(reading: Promise<T>): Promise<T | undefined> {
  return ignoring(reading, "Forbidden");
}

/** Refuses to go on while Legation's namespace is being deleted: nothing can be created in it. */
export async function refuseTerminatingNamespace(client: ClusterClient, signal: AbortSignal): Promise<void> {
  const found = await client.find(namespaces, { name: SYSTEM_NAMESPACE }, { signal });
  if (found?.metadata.deletionTimestamp === undefined) return;
  throw new Failure("refused", {
    object: `${client.cluster}: Namespace ${SYSTEM_NAMESPACE}`,
    problem: "is being deleted",
    remedy: "wait until it is gone, then run the command again; `kubectl describe` shows what holds it",
  });
}
