import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { namespaces, type Resource, serviceAccounts } from "../../kube/resources.ts";
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
import { applyManifest } from "../shared/apply.ts";
import { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import { objectText, some } from "../shared/output.ts";
import { namespaceGone, refOf, remove } from "../shared/removal.ts";
import type { UndoStack } from "./undo.ts";

const NAMESPACE_GONE_WITHIN_MS = 20_000;

export interface GrantContext {
  readonly member: ClusterClient;
  readonly discovery: Discovery;
  readonly undo: UndoStack;
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
}

/** Creates the host's service account and its rights in the member. Reports whether the account is a new one. */
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

/** Applies one object in the member. Returns true if the object is new; a failed join then removes it. */
async function make(
  resource: Resource<KubeObject>,
  manifest: Manifest,
  { member, discovery, undo, signal, report }: GrantContext,
  takeBack?: (uid: string) => (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const ref = refOf(manifest.metadata);
  const what = `${member.cluster}: ${objectText(manifest.kind, ref)}`;
  const before = await member.find(resource, ref, { signal });
  let made: Stored<KubeObject> | undefined;
  if (before === undefined) {
    // Pushed before the write: an object whose answer was lost is found by its name.
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
    // The context's Discovery ended with the interruption that is being undone.
    const discovery = new Discovery(member, signal);
    const { foreign, unknown } = await contentsOf(member, discovery, SYSTEM_NAMESPACE, hostId, signal);
    if (foreign.length > 0 || unknown.length > 0) throw new Error(`kept: it holds ${some([...foreign, ...unknown])}`);
    await remove(member, namespaces, { name: SYSTEM_NAMESPACE }, { uid, signal });
    // An empty namespace takes seconds to go; a second join would meet it terminating.
    await namespaceGone(member, SYSTEM_NAMESPACE, NAMESPACE_GONE_WITHIN_MS, signal);
  };
}
