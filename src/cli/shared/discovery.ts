import { z } from "zod";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring, isKubeError, type KubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";
import { Failure } from "./failure.ts";

const resourceList = z.object({
  resources: z.array(
    z.object({ name: z.string(), kind: z.string(), namespaced: z.boolean(), verbs: z.array(z.string()).default([]) }),
  ),
});

const METRICS_GROUP = "metrics.k8s.io";

const groupVersion = z.object({ version: z.string() });
const groupList = z.object({
  groups: z.array(z.object({ name: z.string(), versions: z.array(groupVersion), preferredVersion: groupVersion })),
});

/** Reports whether an API group holds metrics only: `metrics.k8s.io`, `custom.metrics.k8s.io`, `external.metrics.k8s.io`. */
function isMetricsGroup(group: string): boolean {
  return group === METRICS_GROUP || group.endsWith(`.${METRICS_GROUP}`);
}

export interface Discovered {
  readonly resource: Resource<KubeObject>;
  readonly verbs: readonly string[];
}

/** Cached API discovery of one API server. */
export class Discovery {
  readonly #client: ClusterClient;
  readonly #signal: AbortSignal;
  readonly #groups = new Map<string, Promise<readonly Discovered[]>>();

  constructor(client: ClusterClient, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  /** Returns the resource of an apiVersion and kind. Undefined if the server does not serve it. */
  async find(apiVersion: string, kind: string): Promise<Resource<KubeObject> | undefined> {
    const served = await ignoring(this.#groupVersion(apiVersion), "NotFound");
    return served?.find(({ resource }) => resource.kind === kind)?.resource;
  }

  /** Returns the resource like `find`. Rejects with `Failure` if the server does not serve it. */
  async get(apiVersion: string, kind: string): Promise<Resource<KubeObject>> {
    const found = await this.find(apiVersion, kind);
    if (found !== undefined) return found;
    throw new Failure("refused", {
      object: this.#client.cluster,
      problem: `the API server does not serve ${kind} in ${apiVersion}`,
      remedy: "Legation needs Kubernetes 1.30 or newer",
    });
  }

  /** Returns every namespaced resource whose objects can be listed and deleted, like `all`. */
  async removable(): Promise<{
    readonly resources: readonly Resource<KubeObject>[];
    readonly unknown: ReadonlyMap<string, KubeError>;
  }> {
    const { served, unknown } = await this.all();
    const resources = served
      .filter(({ resource, verbs }) => resource.namespaced && verbs.includes("list") && verbs.includes("delete"))
      .map(({ resource }) => resource);
    return { resources, unknown };
  }

  /** Returns every resource once, preferably in its group's preferred version. `unknown`: versions that failed. */
  async all(): Promise<{
    readonly served: readonly Discovered[];
    readonly unknown: ReadonlyMap<string, KubeError>;
  }> {
    const answer = groupList.parse(await this.#client.raw({ method: "GET", path: "/apis", signal: this.#signal }));
    const groupVersions = answer.groups
      .filter(({ name }) => !isMetricsGroup(name))
      .flatMap(({ name, versions, preferredVersion }) =>
        [preferredVersion, ...versions].map(({ version }) => `${name}/${version}`),
      );
    const served = new Map<string, Discovered>();
    const unknown = new Map<string, KubeError>();
    for (const apiVersion of new Set(["v1", ...groupVersions])) {
      try {
        for (const found of await this.#groupVersion(apiVersion)) {
          const name = `${found.resource.group}/${found.resource.plural}`;
          if (!served.has(name)) served.set(name, found);
        }
      } catch (error) {
        if (!isKubeError(error) || this.#signal.aborted) throw error;
        unknown.set(apiVersion, error);
      }
    }
    return { served: [...served.values()], unknown };
  }

  #groupVersion(apiVersion: string): Promise<readonly Discovered[]> {
    const known = this.#groups.get(apiVersion);
    if (known !== undefined) return known;
    const asked = this.#ask(apiVersion);
    this.#groups.set(apiVersion, asked);
    // The server may serve a missing group later: this installation creates CRDs.
    asked.catch(() => this.#groups.delete(apiVersion));
    return asked;
  }

  async #ask(apiVersion: string): Promise<readonly Discovered[]> {
    const [version = "", group = ""] = apiVersion.split("/").reverse();
    const path = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const { resources } = resourceList.parse(await this.#client.raw({ method: "GET", path, signal: this.#signal }));
    return resources
      .filter(({ name }) => !name.includes("/"))
      .map(({ name, kind, namespaced, verbs }) => ({
        resource: { group, version, plural: name, kind, namespaced },
        verbs,
      }));
  }
}
