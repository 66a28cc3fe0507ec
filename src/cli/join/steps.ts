import { CLUSTER_DEFAULTS } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, Secret, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { namespaces, type Resource, secrets, serviceAccounts } from "../../kube/resources.ts";
import { some } from "../counted.ts";
import { Discovery } from "../discovery/discovery.ts";
import { Failure } from "../failure.ts";
import { applyManifest } from "../manifests/apply.ts";
import type { Manifest } from "../manifests/load.ts";
import {
  accessObjects,
  clusterRoleBindings,
  clusterRoles,
  findSystemNamespace,
  type HostAccount,
  ownedByRole,
  systemNamespace,
} from "../member/access.ts";
import { contentsOf } from "../member/contents.ts";
import { credentialsSecretName } from "../member/names.ts";
import { namespaceGone, remove } from "../removal.ts";
import type { UndoStack } from "./undo.ts";

/** Field manager of what a join writes on the host. */
export const FIELD_MANAGER = "legation-join";

const NAMESPACE_GONE_WITHIN_MS = 20_000;

export interface GrantContext {
  readonly member: ClusterClient;
  readonly discovery: Discovery;
  readonly undo: UndoStack;
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
}

/** Makes the host's service account and its rights in the member; tells whether there was no such account before. */
export async function grantAccess(
  role: Manifest,
  account: HostAccount,
  context: GrantContext,
): Promise<{ readonly isNewAccount: boolean }> {
  const { member, signal, report } = context;
  let namespace = await findSystemNamespace(member, signal);
  if (namespace?.metadata.deletionTimestamp !== undefined) {
    report(`${member.cluster}: Namespace ${SYSTEM_NAMESPACE} is being deleted; waiting until it is gone`);
    if (!(await namespaceGone(member, SYSTEM_NAMESPACE, NAMESPACE_GONE_WITHIN_MS, signal))) {
      throw new Failure("notReady", {
        object: `${member.cluster}: Namespace ${SYSTEM_NAMESPACE}`,
        problem: `is being deleted, and was not gone after ${NAMESPACE_GONE_WITHIN_MS / 1000} s`,
        remedy: "see what holds it with `kubectl describe`, then join again",
      });
    }
    namespace = undefined;
  }
  if (namespace === undefined) {
    await make(namespaces, systemNamespace, context, (uid) => removeNamespaceWhenEmpty(context, account.hostId, uid));
  }
  const objects = accessObjects(role, account);
  await make(clusterRoles, objects.role, context);
  const owner = await member.get(clusterRoles, { name: objects.role.metadata.name }, { signal });
  const isNewAccount = await make(serviceAccounts, ownedByRole(objects.user, owner), context);
  await make(clusterRoleBindings, ownedByRole(objects.binding, owner), context);
  return { isNewAccount };
}

/** Applies one object in the member; true when it did not exist before, and then it is undone on failure. */
async function make(
  resource: Resource<KubeObject>,
  manifest: Manifest,
  { member, discovery, undo, signal, report }: GrantContext,
  takeBack?: (uid: string) => (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const { name, namespace } = manifest.metadata;
  const ref = namespace === undefined ? { name } : { namespace, name };
  const what = `${member.cluster}: ${manifest.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
  const before = await member.find(resource, ref, { signal });
  let made: Stored<KubeObject> | undefined;
  if (before === undefined) {
    // Pushed before the write: an object whose answer was lost is found again by its name.
    undo.push(what, async (undoSignal) => {
      const found = made ?? (await member.find(resource, ref, { signal: undoSignal }));
      if (found === undefined) return;
      const { uid } = found.metadata;
      if (takeBack !== undefined) await takeBack(uid)(undoSignal);
      else await remove(member, resource, ref, { signal: undoSignal, uid });
    });
  }
  const { change } = await applyManifest(member, discovery, manifest, signal);
  if (before === undefined) made = await member.find(resource, ref, { signal });
  report(`${what} ${change}`);
  return before === undefined;
}

function removeNamespaceWhenEmpty(
  { member }: GrantContext,
  hostId: string,
  uid: string,
): (signal: AbortSignal) => Promise<void> {
  return async (signal) => {
    // Discovery of its own: the one in the context ends with the interruption that is being undone.
    const discovery = new Discovery(member, signal);
    const { foreign, unknown } = await contentsOf(member, discovery, SYSTEM_NAMESPACE, hostId, signal);
    if (foreign.length > 0 || unknown.length > 0) throw new Error(`kept: it holds ${some([...foreign, ...unknown])}`);
    await remove(member, namespaces, { name: SYSTEM_NAMESPACE }, { uid, signal });
    // Empty but for what Kubernetes put there, so this takes seconds; a second join would otherwise meet it dying.
    await namespaceGone(member, SYSTEM_NAMESPACE, NAMESPACE_GONE_WITHIN_MS, signal);
  };
}

/** Credentials on the host, as one join stored them. */
export interface StoredSecret {
  readonly name: string;
  /** The Secret that was replaced. */
  readonly replaced: Stored<Secret> | undefined;
  /** Reports whether the Secret still holds the credentials that this join stored. */
  readonly isIn: (secret: Secret | undefined) => boolean;
}

/** A Secret in Legation's namespace that somebody else made, and the key of the kubeconfig in it. */
export interface ForeignSecret {
  readonly name: string;
  readonly key: string;
}

/**
 * Stores the member's kubeconfig on the host in place of `replaced`: the credentials of a member that has joined already, or a
 * leftover of an earlier join under the name. When a later step fails, that is there again. Of a `foreign` one the kubeconfig is
 * written and nothing else. Rejects with KubeError of code AlreadyExists or Conflict when somebody else has written it meanwhile.
 */
export async function storeCredentials(
  options: {
    readonly cluster: string;
    readonly kubeconfig: string;
    readonly expires: string;
    readonly foreign?: ForeignSecret | undefined;
  },
  {
    host,
    undo,
    signal,
    replaced,
  }: {
    readonly host: ClusterClient;
    readonly undo: UndoStack;
    readonly signal: AbortSignal;
    readonly replaced: Stored<Secret> | undefined;
  },
): Promise<StoredSecret> {
  const { cluster, kubeconfig, expires, foreign } = options;
  const { name, key } = foreign ?? { name: credentialsSecretName(cluster), key: CLUSTER_DEFAULTS.credentialsKey };
  const ref = { namespace: SYSTEM_NAMESPACE, name };
  const content = Buffer.from(kubeconfig).toString("base64");
  const metadata = {
    ...ref,
    labels: { [VIRTUAL_NODE_LABEL]: cluster },
    annotations: { [TOKEN_EXPIRES_ANNOTATION]: expires },
  };
  const secret: Secret = { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data: { [key]: content } };
  const isIn: StoredSecret["isIn"] = (found) => found?.data?.[key] === content;
  undo.push(`${host.cluster}: Secret ${SYSTEM_NAMESPACE}/${name}`, async (undoSignal) => {
    const found = await host.find(secrets, ref, { signal: undoSignal });
    // Not this join's: it never came there, or somebody has written over it.
    if (found === undefined || !isIn(found)) return;
    const { uid, resourceVersion } = found.metadata;
    if (replaced === undefined) {
      await remove(host, secrets, ref, { uid, signal: undoSignal });
      return;
    }
    const data = beforeIn(replaced.data, key);
    const labels = beforeIn(replaced.metadata.labels, VIRTUAL_NODE_LABEL);
    const annotations = beforeIn(replaced.metadata.annotations, TOKEN_EXPIRES_ANNOTATION);
    const marks = foreign === undefined ? { labels, annotations } : {};
    const body = { metadata: { resourceVersion, ...marks }, data };
    await host.patch(secrets, ref, { type: "merge", body }, { signal: undoSignal });
  });
  const write = { fieldManager: FIELD_MANAGER, signal };
  if (replaced === undefined) await host.create(secrets, secret, write);
  else {
    const { resourceVersion } = replaced.metadata;
    if (foreign !== undefined) {
      const body = { metadata: { resourceVersion }, data: { [key]: content } };
      await host.patch(secrets, ref, { type: "merge", body }, write);
      return { name, replaced, isIn };
    }
    const body = { ...secret, metadata: { ...metadata, resourceVersion } };
    await host.patch(secrets, ref, { type: "apply", body, force: true }, write);
  }
  return { name, replaced, isIn };
}

/** Returns the merge patch that restores a key; null removes one that was not there. */
function beforeIn(
  before: Readonly<Record<string, string>> | undefined,
  key: string,
): Readonly<Record<string, string | null>> {
  return { [key]: before?.[key] ?? null };
}
