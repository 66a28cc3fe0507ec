import {
  COPY_LABEL,
  HOME_API_LABEL,
  HOST_LABEL,
  INTERNAL_ANNOTATIONS,
  PROXY_LABEL,
  VIRTUAL_NODE_LABEL,
} from "../../../src/api/keys.ts";
import { apiRequest } from "../clusters/api-request.ts";
import type { Cluster } from "../clusters/types.ts";

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly verbs?: readonly string[];
}

interface Listed {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  };
}

const LABELS = [HOST_LABEL, COPY_LABEL, HOME_API_LABEL, PROXY_LABEL, VIRTUAL_NODE_LABEL];
// Events tell of the past, and expire.
const PASSING = new Set(["Event"]);
// The API server makes and removes it for each CustomResourceDefinition, some moments later.
const DERIVED = new Set(["APIService"]);

/**
 * Returns every object of Legation in a cluster, by name, namespace, label, annotation or finalizer, as `Kind
 * namespace/name`.
 */
export async function tracesOf(cluster: Cluster): Promise<string[]> {
  const found: string[] = [];
  for (const path of await groupVersions(cluster)) {
    const { resources } = await json<{ readonly resources: readonly ApiResource[] }>(cluster, path);
    const listable = resources.filter(
      ({ name, kind, verbs }) =>
        !name.includes("/") && verbs?.includes("list") === true && !PASSING.has(kind) && !DERIVED.has(kind),
    );
    const lists = await Promise.all(
      listable.map(async ({ name, kind }) => {
        const { items } = await json<{ readonly items: readonly Listed[] }>(cluster, `${path}/${name}`);
        return items.filter(isLegations).map(({ metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`);
      }),
    );
    found.push(...lists.flat());
  }
  return found;
}

async function groupVersions(cluster: Cluster): Promise<readonly string[]> {
  const { groups } = await json<{
    readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
  }>(cluster, "/apis");
  return ["/api/v1", ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
}

function isLegations({ metadata }: Listed): boolean {
  const { name, namespace = "", labels = {}, annotations = {}, finalizers = [] } = metadata;
  if (name.includes("legation") || namespace.includes("legation")) return true;
  if (labels["app.kubernetes.io/managed-by"] === "legation") return true;
  if (LABELS.some((label) => labels[label] !== undefined)) return true;
  if (Object.keys(annotations).some((annotation) => INTERNAL_ANNOTATIONS.has(annotation))) return true;
  return finalizers.some((finalizer) => finalizer.startsWith("legation.dev/"));
}

async function json<T>(cluster: Cluster, path: string): Promise<T> {
  const answer = await apiRequest(cluster, "GET", path);
  // A CustomResourceDefinition that went in between takes its list with it.
  if (answer.status === 404) return { items: [], resources: [] } as T;
  if (answer.status !== 200) throw new Error(`${cluster.name}: GET ${path}: ${answer.status}: ${answer.text}`);
  return JSON.parse(answer.text) as T;
}
