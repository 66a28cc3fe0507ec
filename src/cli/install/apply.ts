import { z } from "zod";
import { jsonEqual } from "../../api/json.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Resource } from "../../kube/resources.ts";
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

const established = z.looseObject({
  status: z.looseObject({ conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })) }),
});

/** Waits until the API server serves a CustomResourceDefinition. */
export async function waitEstablished(manifest: Manifest, { client, discovery, signal }: ApplyContext): Promise<void> {
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const { name } = manifest.metadata;
  const isEstablished = await until(
    async () => {
      const parsed = established.safeParse(await client.get(resource, { name }, { signal }));
      const conditions = parsed.data?.status.conditions ?? [];
      return conditions.some(({ type, status }) => type === "Established" && status === "True");
    },
    { timeoutMs: 30_000, signal },
  );
  if (isEstablished) return;
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

const fields = z.record(z.string(), z.unknown());
const managed = z.array(z.looseObject({ manager: z.string().optional(), fieldsV1: fields.optional() }));
const container = z.looseObject({ name: z.string(), resources: z.unknown().optional() });
const deployment = z.looseObject({
  spec: z.looseObject({
    replicas: z.number().optional(),
    template: z.looseObject({ spec: z.looseObject({ containers: z.array(container) }) }),
  }),
});

/** Keeps a Deployment's replicas and resources that another field manager set: an upgrade must not take memory away. */
export function keepSizes(manifest: Manifest, installed: KubeObject | undefined, installer: string): Manifest {
  const wanted = deployment.safeParse(manifest);
  const found = deployment.safeParse(installed);
  if (manifest.kind !== "Deployment" || !wanted.success || !found.success) return manifest;
  const others = managed
    .parse(installed?.metadata?.managedFields ?? [])
    .filter(({ manager }) => manager !== installer)
    .map(({ fieldsV1 }) => fieldsV1);
  const setByOthers = (...path: string[]): boolean => others.some((owned) => has(owned, path));
  const { spec } = wanted.data;
  const live = new Map(found.data.spec.template.spec.containers.map((each) => [each.name, each]));
  const containers = spec.template.spec.containers.map((each) => {
    const inContainer = ["f:spec", "f:template", "f:spec", "f:containers", `k:${JSON.stringify({ name: each.name })}`];
    const resources = live.get(each.name)?.resources;
    return resources !== undefined && setByOthers(...inContainer, "f:resources") ? { ...each, resources } : each;
  });
  const { replicas } = found.data.spec;
  return {
    ...manifest,
    spec: {
      ...spec,
      ...(replicas !== undefined && setByOthers("f:spec", "f:replicas") ? { replicas } : {}),
      template: { ...spec.template, spec: { ...spec.template.spec, containers } },
    },
  };
}

function has(owned: unknown, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return true;
  const inner = fields.safeParse(owned).data?.[first];
  return inner !== undefined && has(inner, rest);
}
