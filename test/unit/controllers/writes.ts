import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient, DeleteOptions } from "../../../src/kube/client.ts";

/** A write to an existing object: where and how, and its preconditions. */
export interface Write {
  /** E.g. `west patch status`. */
  readonly to: string;
  readonly demands: Readonly<Record<string, unknown>>;
}

/** Returns the client, and notes each write to an existing object. */
export function noting(client: ClusterClient, writes: Write[]): ClusterClient {
  const note = (verb: string, demands: object): void => {
    writes.push({ to: `${client.cluster} ${verb}`, demands: { ...demands } });
  };
  return {
    ...client,
    createSubresource: (resource, ref, subresource, body, options) => {
      note(`create ${subresource}`, demandsOf(body));
      return client.createSubresource(resource, ref, subresource, body, options);
    },
    patch: (resource, ref, patch, options) => {
      const { subresource } = options ?? {};
      note(subresource === undefined ? "patch" : `patch ${subresource}`, demandsOf(patch.body));
      return client.patch(resource, ref, patch, options);
    },
    delete: (resource, ref, options) => {
      const { signal: _signal, ...demands }: DeleteOptions = options ?? {};
      note("delete", demands);
      return client.delete(resource, ref, options);
    },
  };
}

function demandsOf(body: object): object {
  const { metadata: { uid, resourceVersion } = {} }: Partial<KubeObject> = body;
  return { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}
