import type { KubeObject } from "../api/kubernetes.ts";
import type { ClusterClient, WatchEvent, WatchOptions } from "../kube/client.ts";
import { KubeError } from "../kube/errors.ts";
import { pods, type Resource } from "../kube/resources.ts";
import type { CreateThrottle } from "./create-throttle.ts";
import type { JoinedIdentity } from "./identity.ts";

/** Returns a client that sends nothing to another cluster: callers take absence from its answers as deletion. */
export function confirmedClient(
  client: ClusterClient,
  identity: Pick<JoinedIdentity, "problem" | "mistaken" | "confirm">,
  throttle: Pick<CreateThrottle, "of">,
): ClusterClient {
  const { cluster } = client;
  const check = (verb: string, resource: string, code: "NotSent" | "Gone" = "NotSent"): void => {
    const { problem } = identity;
    if (problem !== undefined) throw new KubeError(problem, { code, cluster, verb, resource });
  };
  /** Rejects with Gone once another cluster answers: its resource versions mean nothing in the member. */
  async function* watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions,
  ): AsyncIterable<WatchEvent<T>> {
    await identity.confirm();
    check("watch", resource.plural, "Gone");
    const { mistaken } = identity;
    try {
      yield* client.watch(resource, { ...options, signal: AbortSignal.any([options.signal, mistaken]) });
    } catch (error) {
      if (!mistaken.aborted || options.signal.aborted) throw error;
      const message = mistaken.reason instanceof Error ? mistaken.reason.message : "another cluster answers";
      throw new KubeError(message, { code: "Gone", cluster, verb: "watch", resource: resource.plural });
    }
  }
  return {
    cluster,
    watch,
    get: async (resource, ref, options) => {
      check("get", resource.plural);
      return client.get(resource, ref, options);
    },
    find: async (resource, ref, options) => {
      check("get", resource.plural);
      return client.find(resource, ref, options);
    },
    list: async (resource, options) => {
      if (options?.continue === undefined) await identity.confirm();
      check("list", resource.plural);
      return client.list(resource, options);
    },
    create: async (resource, object, options = {}) => {
      check("create", resource.plural);
      const send = () => client.create(resource, object, options);
      // Only an uncertain create of a pod keeps the pod from other members, so no other create is throttled.
      if (resource.plural !== pods.plural || options.dryRun === true) return send();
      const { namespace = "", name = "" } = object.metadata ?? {};
      const { signal, isWanted } = options;
      return throttle.of({ namespace, name, signal, isWanted }, send);
    },
    createSubresource: async (resource, ref, subresource, body, options) => {
      check("create", `${resource.plural}/${subresource}`);
      return client.createSubresource(resource, ref, subresource, body, options);
    },
    replace: async (resource, object, options) => {
      check("update", resource.plural);
      return client.replace(resource, object, options);
    },
    patch: async (resource, ref, patch, options) => {
      check("patch", resource.plural);
      return client.patch(resource, ref, patch, options);
    },
    delete: async (resource, ref, options) => {
      check("delete", resource.plural);
      return client.delete(resource, ref, options);
    },
    raw: async (request) => {
      check(request.method.toLowerCase(), request.path);
      return client.raw(request);
    },
    upgrade: async (resource, ref, subresource, options) => {
      check("get", `${resource.plural}/${subresource}`);
      return client.upgrade(resource, ref, subresource, options);
    },
    stream: async (resource, ref, subresource, options) => {
      check("get", `${resource.plural}/${subresource}`);
      return client.stream(resource, ref, subresource, options);
    },
    close: () => client.close(),
  };
}
