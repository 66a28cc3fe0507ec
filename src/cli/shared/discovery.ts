import { z } from "zod";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient, RequestOptions } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import { apiVersionOf, kindName, type Resource } from "../../kube/resources.ts";
import { Failure } from "./failure.ts";

// KEP-3352: all groups in two answers. Kubernetes 1.30 and newer serve v2.
const ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// A member may send any text: a type's names are printed, and are part of paths.
const NAME = /^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$/;
const GROUP = /^[-.a-z0-9]*$/;
// The groups `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io` hold metrics alone.
const METRICS_GROUP = /(^|\.)metrics\.k8s\.io$/;

const texts = orEmpty(z.string());
const resource = z.object({
  resource: z.string(),
  responseKind: z.object({ kind: z.string() }),
  scope: z.string(),
  singularResource: z.string().default(""),
  shortNames: texts,
  categories: texts,
  verbs: texts,
});
const version = z.object({
  version: z.string(),
  freshness: z.string().default("Current"),
  resources: orEmpty(resource),
});
const groupDiscoveryList = z.object({
  kind: z.literal("APIGroupDiscoveryList"),
  // The core group has no name.
  items: orEmpty(z.object({ metadata: z.object({ name: z.string().default("") }), versions: orEmpty(version) })),
});

export interface ServedType {
  readonly resource: Resource<KubeObject>;
  readonly verbs: readonly string[];
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

type GroupVersion = Pick<Resource<KubeObject>, "group" | "version">;

export interface Served {
  /** The types, in the order of the API server's preference. */
  readonly types: readonly ServedType[];
  /** Versions of groups whose own server, behind the API server, does not answer: what it serves may have changed. */
  readonly stale: readonly GroupVersion[];
}

/** Returns the schema of a list, which Go writes as null when it is empty. */
function orEmpty<Item>(item: z.ZodType<Item>): z.ZodType<Item[]> {
  return z.preprocess((value) => value ?? [], z.array(item));
}

/** Reads what an API server serves. Rejects with KubeError. */
export async function readServed(client: ClusterClient, options: RequestOptions): Promise<Served> {
  const answers = await Promise.all(
    ["/api", "/apis"].map(async (path) => {
      const parsed = groupDiscoveryList.safeParse(
        await client.raw({ method: "GET", path, accept: ACCEPT, ...options }),
      );
      if (parsed.success) return parsed.data.items;
      throw new KubeError("the answer is no aggregated discovery document; Kubernetes 1.30 or newer sends one", {
        code: "BadAnswer",
        cluster: client.cluster,
        verb: "get",
        resource: path,
      });
    }),
  );
  const versions = answers
    .flat()
    .flatMap(({ metadata: { name: group }, versions }) => versions.map((version) => ({ group, ...version })));
  const types = versions.flatMap(({ group, version, resources }) =>
    resources.map(({ resource, responseKind: { kind }, scope, singularResource, shortNames, categories, verbs }) => ({
      resource: { group, version, plural: resource, kind, namespaced: scope === "Namespaced" },
      verbs,
      singular: singularResource,
      shortNames,
      categories,
    })),
  );
  return {
    types: types.filter(
      ({ resource: { group, version, plural, kind } }) =>
        GROUP.test(group) && [version, plural, kind].every((name) => NAME.test(name)),
    ),
    stale: versions.filter(({ freshness }) => freshness !== "Current"),
  };
}

/** Returns the types without further versions of one. */
export function oncePerGroup(types: readonly ServedType[]): readonly ServedType[] {
  return [...Map.groupBy(types, ({ resource }) => kindName(resource)).values()].flatMap(([first]) => first ?? []);
}

/** Cached API discovery of one API server. */
export class Discovery {
  readonly #client: ClusterClient;
  readonly #signal: AbortSignal;
  #served: Promise<Served> | undefined;

  constructor(client: ClusterClient, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  /** Returns the resource of an apiVersion and kind. Undefined if the server does not serve it. */
  async find(apiVersion: string, kind: string): Promise<Resource<KubeObject> | undefined> {
    const { types } = await this.#read();
    const found = types.find(({ resource }) => resource.kind === kind && apiVersionOf(resource) === apiVersion);
    // The server may serve it later: this installation creates CRDs.
    if (found === undefined) this.#served = undefined;
    return found?.resource;
  }

  /** Returns the resource like `find`. Rejects with `Failure` if the server does not serve it. */
  async get(apiVersion: string, kind: string): Promise<Resource<KubeObject>> {
    // The first answer may be older than the CRDs: the second one is read anew.
    const found = (await this.find(apiVersion, kind)) ?? (await this.find(apiVersion, kind));
    if (found !== undefined) return found;
    throw new Failure("refused", {
      object: this.#client.cluster,
      problem: `the API server does not serve ${kind} in ${apiVersion}`,
      remedy: "Legation needs Kubernetes 1.30 or newer",
    });
  }

  /** Returns every namespaced resource whose objects can be listed and deleted, like `all`. */
  async removable(): Promise<Served> {
    const { types, stale } = await this.all();
    const isRemovable = ({ resource, verbs }: ServedType): boolean =>
      resource.namespaced && verbs.includes("list") && verbs.includes("delete");
    return { types: types.filter(isRemovable), stale };
  }

  /** Returns every resource but metrics once, preferably in its group's preferred version. */
  async all(): Promise<Served> {
    const { types, stale } = await this.#read();
    const unread = new Set(stale.map(apiVersionOf));
    const hasObjects = ({ group }: GroupVersion): boolean => !METRICS_GROUP.test(group);
    return {
      types: oncePerGroup(types.filter(({ resource }) => hasObjects(resource) && !unread.has(apiVersionOf(resource)))),
      stale: stale.filter(hasObjects),
    };
  }

  #read(): Promise<Served> {
    this.#served ??= readServed(this.#client, { signal: this.#signal });
    return this.#served;
  }
}
