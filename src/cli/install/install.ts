import { VIRTUAL_NODE_LABEL, VIRTUAL_NODE_PREFIX } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { delegatedTypes } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { customResourceDefinitions, kindName, namespaces, nodes, type Resource } from "../../kube/resources.ts";
import { isVirtualNodeOf } from "../member/virtual-node.ts";
import { Failure } from "../shared/failure.ts";
import { kindsOf, listInstalled, type Manifest } from "../shared/manifests.ts";
import { findDefined, findTypes, SOURCE_VERBS, type TypeName } from "../shared/named-types.ts";
import { objectText, some } from "../shared/output.ts";
import { refuseTerminatingNamespace } from "../shared/reading.ts";
import { refOf } from "../shared/removal.ts";
import { type AppliedManifest, type ApplyContext, applyManifest, removeManifest, waitEstablished } from "./apply.ts";
import { type InstallOptions, planInstall } from "./objects.ts";
import { delegatedTypeObjects, lackingFields, typeFields } from "./types.ts";
import { prepareWebhooks } from "./webhooks.ts";

/** The types that an installation allows, and how. */
export interface TypeOptions {
  readonly types: readonly TypeName[];
  /** The types' CustomResourceDefinitions follow into members. */
  readonly definitions: boolean;
  /** DelegatedTypes whose fields are known. */
  readonly knownTypes: readonly Manifest[];
}

export interface InstallContext extends ApplyContext {
  readonly onApplied: (applied: AppliedManifest) => void;
  /** Receives what an operator should change. */
  readonly onAdvice: (advice: string) => void;
}

/** Installs or upgrades Legation on the host. Safe to repeat after an interruption. */
export async function install(
  manifests: readonly Manifest[],
  options: InstallOptions,
  context: InstallContext,
): Promise<void> {
  const { client, discovery, signal, onApplied } = context;
  const { apply, leaveOut } = planInstall(manifests, options);
  // Checked before the first write: a server that lacks a kind must not keep half an installation.
  for (const { apiVersion, kind } of apply) await discovery.get(apiVersion, kind);
  await refuseTerminatingNamespace(client, signal);
  await refuseNodesNamedAsOurs(client, signal);

  const own = apply.filter(({ kind }) => kind === customResourceDefinitions.kind);
  for (const definition of own) onApplied(await applyManifest(definition, context));
  for (const definition of own) await waitEstablished(definition, context);
  for (const manifest of apply) {
    if (own.includes(manifest)) continue;
    const isMade = await prepareWebhooks(manifest, context);
    const applied = await applyManifest(manifest, context);
    onApplied(isMade ? { ...applied, change: "created" } : applied);
  }
  for (const manifest of [...leaveOut, ...(await leftOvers(apply, context))]) {
    const removed = await removeManifest(manifest, context);
    if (removed !== undefined) onApplied(removed);
  }
}

/** Returns the resources of the named types. Rejects with `Failure` for one that members cannot get. */
export function findAllowable(
  { types, definitions }: TypeOptions,
  { client, discovery, signal }: ApplyContext,
): Promise<readonly Resource<KubeObject>[]> {
  return definitions
    ? findDefined(client, discovery, types, { verbs: SOURCE_VERBS, signal })
    : findTypes(discovery, types, { cluster: client.cluster, verbs: SOURCE_VERBS });
}

/** Allows types on a host where Legation is installed. */
export async function allowTypes(
  types: readonly Resource<KubeObject>[],
  { definitions, knownTypes: manifests }: TypeOptions,
  context: InstallContext,
): Promise<void> {
  const { client, signal, onApplied, onAdvice } = context;
  for (const type of types) {
    const installed = (await client.find(delegatedTypes, { name: kindName(type) }, { signal }))?.spec;
    const fields = typeFields(type, { manifests, installed, definition: definitions ? "Follow" : undefined });
    for (const manifest of delegatedTypeObjects(type, fields)) onApplied(await applyManifest(manifest, context));
    const advice = installed && lackingFields(type, { manifests, installed });
    if (advice !== undefined) onAdvice(advice);
  }
}

/** Returns objects of another version that this one lacks. Leaves out CRDs and namespaces, which hold what users wrote. */
async function leftOvers(apply: readonly Manifest[], { client, discovery, signal }: ApplyContext): Promise<Manifest[]> {
  const known = new Set(apply.map(({ kind, metadata }) => objectText(kind, metadata)));
  const found: Manifest[] = [];
  for (const { apiVersion, kind } of kindsOf(apply)) {
    if (kind === customResourceDefinitions.kind || kind === namespaces.kind) continue;
    const resource = await discovery.get(apiVersion, kind);
    for (const { metadata } of await listInstalled(client, resource, signal)) {
      if (!known.has(objectText(kind, metadata))) found.push({ apiVersion, kind, metadata: { ...refOf(metadata) } });
    }
  }
  return found;
}

/** Refuses real nodes with Legation's prefix: only its controller may bind pods to those, so nothing else could start there. */
async function refuseNodesNamedAsOurs(client: ClusterClient, signal: AbortSignal): Promise<void> {
  const all = await listAll(client, nodes, { dropManagedFields: true, signal });
  const taken = all
    .filter(({ metadata }) => metadata.name.startsWith(VIRTUAL_NODE_PREFIX))
    .filter(({ metadata }) => metadata.labels?.[VIRTUAL_NODE_LABEL] === undefined)
    .filter((node) => !isVirtualNodeOf(node, node.metadata.name.slice(VIRTUAL_NODE_PREFIX.length)))
    .map(({ metadata }) => metadata.name);
  if (taken.length === 0) return;
  throw new Failure("refused", {
    object: client.cluster,
    problem: `has nodes whose names begin with "${VIRTUAL_NODE_PREFIX}", which only virtual nodes may: ${some(taken)}`,
    remedy: "give these nodes other names first, or install Legation in another cluster",
  });
}
