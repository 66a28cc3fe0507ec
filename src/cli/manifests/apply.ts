import { z } from "zod";
import { jsonEqual } from "../../api/json.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Discovery } from "../discovery/discovery.ts";
import { Failure } from "../failure.ts";
import { waitFor } from "../wait.ts";
import { keepSizes } from "./kept.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "./labels.ts";
import type { Manifest } from "./load.ts";

const FIELD_MANAGER = "legation-install";

/** The effect of applying one object. */
export type Change = "created" | "configured" | "unchanged" | "removed";

/** An applied object and the effect. */
export interface Applied {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly change: Change;
}

/** Applies one object by server-side apply; fields that others own and the manifest does not name stay theirs. */
export async function applyManifest(
  client: ClusterClient,
  discovery: Discovery,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<Applied> {
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const ref = referenceOf(manifest, resource);
  const before = await client.find(resource, ref, { signal });
  const after = await client.patch(
    resource,
    ref,
    { type: "apply", body: keepSizes(manifest, before, FIELD_MANAGER), force: true },
    { fieldManager: FIELD_MANAGER, signal },
  );
  const change = before === undefined ? "created" : sameContent(before, after) ? "unchanged" : "configured";
  return { kind: manifest.kind, ...ref, change };
}

/** Removes an object that an earlier installation made and this one does without; undefined when there is none. */
export async function removeManifest(
  client: ClusterClient,
  discovery: Discovery,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<Applied | undefined> {
  const resource = await discovery.find(manifest.apiVersion, manifest.kind);
  if (resource === undefined) return undefined;
  const ref = referenceOf(manifest, resource);
  const found = await client.find(resource, ref, { signal });
  if (found?.metadata.labels?.[MANAGED_BY_LABEL] !== MANAGED_BY) return undefined;
  try {
    await client.delete(resource, ref, { uid: found.metadata.uid, propagationPolicy: "Background", signal });
  } catch (error) {
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
  return { kind: manifest.kind, ...ref, change: "removed" };
}

const established = z.looseObject({
  status: z.looseObject({ conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })) }),
});

/** Waits until the API server serves a CustomResourceDefinition. */
export async function waitEstablished(
  client: ClusterClient,
  discovery: Discovery,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<void> {
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const { name } = manifest.metadata;
  const done = await waitFor(
    async () => {
      const parsed = established.safeParse(await client.get(resource, { name }, { signal }));
      const conditions = parsed.data?.status.conditions ?? [];
      return conditions.some(({ type, status }) => type === "Established" && status === "True") || undefined;
    },
    { timeoutMs: 30_000, signal },
  );
  if (done === true) return;
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

/** Equal but for what the API server and controllers write: a status may change between the two reads. */
function sameContent(a: KubeObject, b: KubeObject): boolean {
  return jsonEqual(written(a), written(b));
}

function written(object: KubeObject & { readonly status?: unknown }): object {
  const { status: _status, metadata, ...rest } = object;
  const { resourceVersion: _version, managedFields: _fields, ...kept } = metadata ?? {};
  return { ...rest, metadata: kept };
}
