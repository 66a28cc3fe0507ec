import { z } from "zod";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";
import { Failure } from "../failure.ts";

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

/** `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io`: figures, which need not even answer. */
function isMetricsGroup(group: string): boolean {
  return group === METRICS_GROUP || group.endsWith(`.${METRICS_GROUP}`);
}

interface Discovered {
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

  /** The resource of a manifest's apiVersion and kind; undefined when the server does not serve it. */
  async find(apiVersion: string, kind: string): Promise<Resource<KubeObject> | undefined> {
    try {
      const served = await this.#groupVersion(apiVersion);
      return served.find(({ resource }) => resource.kind === kind)?.resource;
    } catch (error) {
      if (isKubeError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  /** Like `find`, but a resource that is not served is a failure. */
  async get(apiVersion: string, kind: string): Promise<Resource<KubeObject>> {
    const found = await this.find(apiVersion, kind);
    if (found !== undefined) return found;
    throw new Failure("refused", {
      object: this.#client.cluster,
      problem: `the API server does not serve ${kind} in ${apiVersion}`,
      remedy: "Legation needs Kubernetes 1.30 or newer",
    });
  }

  /**
   * Every namespaced resource whose objects can be listed and deleted, once: in its group's preferred version, or in
   * another where that one lacks it. What only shows something, like metrics, holds nothing. `unknown` holds the versions
   * that did not answer (an aggregated API that is down), with the error: nothing can be said of what is in them.
   */
  async removable(): Promise<{
    readonly resources: readonly Resource<KubeObject>[];
    readonly unknown: ReadonlyMap<string, KubeError>;
  }> {
    const answer = groupList.parse(await this.#client.raw({ method: "GET", path: "/apis", signal: this.#signal }));
    const groupVersions = answer.groups
      .filter(({ name }) => !isMetricsGroup(name))
      .flatMap(({ name, versions, preferredVersion }) =>
        [preferredVersion, ...versions].map(({ version }) => `${name}/${version}`),
      );
    const resources = new Map<string, Resource<KubeObject>>();
    const unknown = new Map<string, KubeError>();
    for (const apiVersion of new Set(["v1", ...groupVersions])) {
      try {
        for (const { resource, verbs } of await this.#groupVersion(apiVersion)) {
          const name = `${resource.group}/${resource.plural}`;
          if (!resource.namespaced || !verbs.includes("list") || !verbs.includes("delete")) continue;
          if (!resources.has(name)) resources.set(name, resource);
        }
      } catch (error) {
        if (!isKubeError(error) || this.#signal.aborted) throw error;
        unknown.set(apiVersion, error);
      }
    }
    return { resources: [...resources.values()], unknown };
  }

  #groupVersion(apiVersion: string): Promise<readonly Discovered[]> {
    const known = this.#groups.get(apiVersion);
    if (known !== undefined) return known;
    const asked = this.#ask(apiVersion);
    this.#groups.set(apiVersion, asked);
    // A group that was missing may be served later: a CRD of this very installation.
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
