import { z } from "zod";
import { jsonEqual, setAt, valueAt } from "../../api/json.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { customResourceDefinitions, type Resource } from "../../kube/resources.ts";
import type { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import { remove } from "../shared/removal.ts";
import { until } from "../shared/wait.ts";

const FIELD_MANAGER = "legation-install";

export type ApplyEffect = "created" | "configured" | "unchanged" | "removed";

export interface AppliedManifest {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly change: ApplyEffect;
}

/** The cluster in which manifests are applied. */
export interface ApplyContext {
  readonly client: ClusterClient;
  readonly discovery: Discovery;
  readonly signal: AbortSignal;
}

interface ApplyOptions {
  readonly dryRun: boolean;
  /** Returns the manifest to apply beside what is installed. Undefined: it is applied as it is. */
  readonly adapt: ((manifest: Manifest, installed: KubeObject | undefined) => Manifest) | undefined;
}

/** Applies one object by server-side apply. A dry run stores nothing, and tells what would change. */
export async function applyManifest(
  manifest: Manifest,
  { client, discovery, signal }: ApplyContext,
  { dryRun, adapt }: ApplyOptions = { dryRun: false, adapt: undefined },
): Promise<AppliedManifest> {
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const ref = referenceOf(manifest, resource);
  const before = await client.find(resource, ref, { signal });
  const patch = {
    type: "apply",
    body: keepSizes(adapt?.(manifest, before) ?? manifest, before, FIELD_MANAGER),
    force: true,
  } as const;
  const after = await client.patch(resource, ref, patch, { fieldManager: FIELD_MANAGER, dryRun, signal });
  const change =
    before === undefined ? "created" : jsonEqual(written(before), written(after)) ? "unchanged" : "configured";
  return { kind: manifest.kind, ...ref, change };
}

/** Removes an object of an earlier installation. Resolves to undefined if there is none. */
export async function removeManifest(
  manifest: Manifest,
  { client, discovery, signal }: ApplyContext,
): Promise<AppliedManifest | undefined> {
  const resource = await discovery.find(manifest.apiVersion, manifest.kind);
  if (resource === undefined) return undefined;
  const ref = referenceOf(manifest, resource);
  const found = await client.find(resource, ref, { signal });
  if (found?.metadata.labels?.[MANAGED_BY_LABEL] !== MANAGED_BY) return undefined;
  await remove(client, resource, ref, { uid: found.metadata.uid, signal });
  return { kind: manifest.kind, ...ref, change: "removed" };
}

const conditionList = z.array(z.looseObject({ type: z.string(), status: z.string() })).default([]);

/** Waits until the API server serves a CustomResourceDefinition. */
export async function waitEstablished({ metadata: { name } }: Manifest, context: ApplyContext): Promise<void> {
  const { client, signal } = context;
  const isEstablished = async (): Promise<boolean> => {
    const found = await client.get(customResourceDefinitions, { name }, { signal });
    const conditions = conditionList.parse(valueAt(found, ["status", "conditions"]));
    return conditions.some(({ type, status }) => type === "Established" && status === "True");
  };
  if (await until(isEstablished, { timeoutMs: 30_000, signal })) return;
  throw new Failure("notReady", {
    object: `CustomResourceDefinition ${name}`,
    problem: "was not established within 30 s",
    remedy: `see the conditions of \`kubectl get crd ${name} -o yaml\`, then run the command again`,
  });
}

function referenceOf(manifest: Manifest, resource: Resource<KubeObject>): { namespace?: string; name: string } {
  const { name, namespace } = manifest.metadata;
  return resource.namespaced ? { namespace: namespace ?? "default", name } : { name };
}

function written(object: KubeObject & { readonly status?: unknown }): object {
  const { status: _status, metadata, ...rest } = object;
  const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata ?? {};
  return { ...rest, metadata: kept };
}

const managed = z.array(z.looseObject({ manager: z.string().optional(), fieldsV1: z.unknown() }));
const containerList = z.array(z.looseObject({ name: z.string() }));
const CONTAINERS = ["spec", "template", "spec", "containers"];

/** Keeps a Deployment's replicas and resources that another field manager set: an upgrade must not take memory away. */
export function keepSizes(manifest: Manifest, installed: KubeObject | undefined, installer: string): Manifest {
  if (manifest.kind !== "Deployment" || installed === undefined) return manifest;
  const fields = managed.parse(installed.metadata?.managedFields ?? []).filter(({ manager }) => manager !== installer);
  const isOfOther = (path: readonly string[]): boolean =>
    fields.some(({ fieldsV1 }) => valueAt(fieldsV1, path) !== undefined);
  const live = containerList.parse(valueAt(installed, CONTAINERS));
  const containers = containerList.parse(valueAt(manifest, CONTAINERS)).map((container) => {
    const path = [...CONTAINERS.map((field) => `f:${field}`), `k:${JSON.stringify({ name: container.name })}`];
    if (!isOfOther([...path, "f:resources"])) return container;
    return { ...container, resources: live.find(({ name }) => name === container.name)?.resources };
  });
  const sized = setAt(manifest, CONTAINERS, containers);
  const replicas = ["spec", "replicas"];
  return isOfOther(replicas.map((field) => `f:${field}`))
    ? setAt(sized, replicas, valueAt(installed, replicas))
    : sized;
}
