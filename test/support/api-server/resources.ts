import * as known from "../../../src/kube/resources.ts";
import { apiVersionOf, kindName } from "../../../src/kube/resources.ts";
import { discoveryDocument } from "../builders/discovery.ts";
import type { ServedResource } from "./refusal.ts";

/** The built-in resources, and those that clients asked for or tests defined; discovery names them. */
export class Resources {
  readonly #defined = new Map<string, ServedResource>();
  readonly #unserved = new Set<string>();

  constructor() {
    for (const one of Object.values(known)) if (typeof one === "object" && "version" in one) this.define(one);
  }

  /** Adds a resource, unless it is known. */
  define(...resources: readonly ServedResource[]): void {
    for (const resource of resources) {
      if (!this.#defined.has(kindName(resource))) this.#defined.set(kindName(resource), resource);
    }
  }

  serve(resource: ServedResource, isServed: boolean): void {
    this.define(resource);
    if (isServed) this.#unserved.delete(kindName(resource));
    else this.#unserved.add(kindName(resource));
  }

  isServed(resource: ServedResource): boolean {
    return !this.#unserved.has(kindName(resource));
  }

  /** Finds a resource that a request names by its path. */
  find(group: string, version: string, plural: string): ServedResource | undefined {
    const found = this.#defined.get(kindName({ group, plural }));
    return found?.version === version ? found : undefined;
  }

  /** Finds a resource by the kind of its objects. */
  ofKind(kind: string): ServedResource | undefined {
    return [...this.#defined.values()].find((resource) => resource.kind === kind);
  }

  /** Finds a resource by its plural. */
  ofPlural(plural: string): ServedResource | undefined {
    return [...this.#defined.values()].find((resource) => resource.plural === plural);
  }

  /** Returns the aggregated discovery document of a path: undefined for another path. */
  aggregated(path: string): object | undefined {
    if (path !== "/api" && path !== "/apis") return undefined;
    const served = [...this.#defined.values()].filter((resource) => this.isServed(resource));
    return discoveryDocument(
      path,
      served.map((resource) => ({ ...resource, verbs: VERBS })),
    );
  }

  /** Returns the discovery document of a path: undefined for another path, or a group that is not served. */
  discovery(path: string): object | undefined {
    const served = [...this.#defined.values()].filter((resource) => this.isServed(resource));
    if (path === "/apis") {
      const names = new Set(served.map(({ group }) => group).filter((group) => group !== ""));
      const groups = [...names].map((name) => {
        const all = new Set(served.filter(({ group }) => group === name).map(({ version }) => version));
        const versions = [...all].map((version) => ({ groupVersion: `${name}/${version}`, version }));
        return { name, versions, preferredVersion: versions[0] };
      });
      return { kind: "APIGroupList", apiVersion: "v1", groups };
    }
    const groupVersion = /^\/(?:api|apis(?=\/[^/]+\/))\/(.+)$/.exec(path)?.[1];
    const own = served.filter((resource) => apiVersionOf(resource) === groupVersion);
    if (groupVersion === undefined || (own.length === 0 && groupVersion !== "v1")) return undefined;
    const resources = own.map(({ plural: name, kind, namespaced }) => ({ name, kind, namespaced, verbs: VERBS }));
    return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
  }
}

const VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"];
