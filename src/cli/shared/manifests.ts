import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { ACCESS_NAMESPACE } from "../../api/access.ts";
import { HELM, HOST_LABEL, INSTALLED_LABELS, MANAGED_BY, MANAGED_BY_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { MEMBER_RELAY_NAMESPACE, RELAY_NAMESPACE } from "../../api/relay.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import type { Resource } from "../../kube/resources.ts";
import { parseDocuments } from "./documents.ts";
import { Failure } from "./failure.ts";
import { packageRoot } from "./package-root.ts";

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | undefined;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

// `kubectl apply -k` and `legation install` must apply the same objects, so the file may hold no other field.
const kustomizationSchema = z.strictObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  resources: z.array(z.string()),
});

/** Returns all objects of a kustomization folder or of one YAML file, in the listed order. */
export async function loadManifests(path: string): Promise<Manifest[]> {
  if (!(await stat(path)).isDirectory()) return parseManifests(await readFile(path, "utf8"), path);
  const file = join(path, "kustomization.yaml");
  const parsed = kustomizationSchema.safeParse(parse(await readFile(file, "utf8")));
  if (!parsed.success) throw new Failure("failure", { object: file, problem: z.prettifyError(parsed.error) });
  const objects: Manifest[] = [];
  for (const resource of parsed.data.resources) objects.push(...(await loadManifests(join(path, resource))));
  return objects;
}

/** Returns the objects that come with this version, of `manifests/` or of a folder in it. */
export function shippedManifests(folder = ""): Promise<Manifest[]> {
  return loadManifests(join(packageRoot(), "manifests", folder));
}

/** Returns the manifests with those of the further parts that are installed. */
export async function withParts(
  own: readonly Manifest[],
  parts: { readonly access: boolean; readonly relay: boolean; readonly mcs: boolean },
): Promise<readonly Manifest[]> {
  const folders = (["access", "relay", "mcs"] as const).filter((part) => parts[part]);
  return [...own, ...(await Promise.all(folders.map(shippedManifests))).flat()];
}

/** Returns the objects of a YAML text without its empty documents. */
export function parseManifests(text: string, file: string): Manifest[] {
  return parseDocuments(text, file).map(({ metadata, ...object }) => ({
    ...object,
    // Manifests generate no names.
    metadata: { ...metadata, name: metadata.name ?? "" },
  }));
}

export interface KindName {
  readonly apiVersion: string;
  readonly kind: string;
}

export function kindsOf(manifests: readonly Manifest[]): KindName[] {
  return [
    ...new Map(manifests.map(({ apiVersion, kind }) => [`${apiVersion}/${kind}`, { apiVersion, kind }])).values(),
  ];
}

// Namespaces in which some version installs objects.
const INSTALLED_NAMESPACES: ReadonlySet<string | undefined> = new Set([
  undefined,
  SYSTEM_NAMESPACE,
  ACCESS_NAMESPACE,
  RELAY_NAMESPACE,
  MEMBER_RELAY_NAMESPACE,
  "kube-node-lease",
  "kube-public",
  "kube-system",
]);

const INSTALLERS: ReadonlySet<string | undefined> = new Set([MANAGED_BY, HELM]);

/** Returns the objects of a kind that some version installed, without those of other hosts and users. */
export async function listInstalled(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  signal: AbortSignal,
): Promise<readonly Stored<KubeObject>[]> {
  const { [MANAGED_BY_LABEL]: _, ...others } = INSTALLED_LABELS;
  const own = Object.entries(others).map(([key, value]) => `${key}=${value}`);
  const labelSelector = [...own, `!${HOST_LABEL}`].join(",");
  const found = await listAll(client, resource, { labelSelector, signal });
  return found.filter(
    ({ metadata: { namespace, labels } }) =>
      INSTALLED_NAMESPACES.has(namespace) && INSTALLERS.has(labels?.[MANAGED_BY_LABEL]),
  );
}
