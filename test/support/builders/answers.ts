import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient, Patch } from "../../../src/kube/client.ts";
import { isStored, type Resource } from "../../../src/kube/resources.ts";

// Answers of a client that a test makes up. What a test tells of the API server's own behaviour belongs to
// `test/support/api-server`.

/** Returns an object as an API server's answer of the type that a request asks for. Identity that is left out is made up. */
export function answerOf<T extends KubeObject>(object: object = {}): Stored<T> {
  const { metadata }: KubeObject = object;
  const answer: object = { ...object, metadata: { name: "made", uid: "made-uid", resourceVersion: "8", ...metadata } };
  if (!isStored<T>(answer)) throw new Error(`not a stored object: ${JSON.stringify(object)}`);
  return answer;
}

/** Returns the answer of each request for one object: that object, or what `onRequest` returns. */
export function answering(
  object: object = {},
  onRequest: () => unknown = () => {},
): <T extends KubeObject>(resource: Resource<T>) => Promise<Stored<T>> {
  return async <T extends KubeObject>(_resource: Resource<T>) => {
    const answer = await onRequest();
    return answerOf<T>(typeof answer === "object" && answer !== null ? answer : object);
  };
}

/** Returns the list of a client whose collections have these objects. */
export function listing(
  items: readonly object[] | ((plural: string, options: ListRequest) => readonly object[]),
  resourceVersion = "1",
): ClusterClient["list"] {
  const itemsOf = typeof items === "function" ? items : () => items;
  return async <T extends KubeObject>({ plural }: { readonly plural: string }, options: ListRequest = {}) => {
    return { items: itemsOf(plural, options).map((item) => answerOf<T>(item)), resourceVersion, size: 1 };
  };
}

type ListRequest = NonNullable<Parameters<ClusterClient["list"]>[1]>;

/** A watch that opens and stays silent until it is ended. */
export const silentWatch: ClusterClient["watch"] = async function* (_resource, { signal, onOpen }) {
  onOpen?.();
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
};

/** Returns the fields that a patch sets. A JSON patch, which has none, fails the test. */
export function fieldsOf(patch: Patch): object {
  if (patch.type === "json") throw new Error("a JSON patch was not expected");
  return patch.body;
}

/** A write as a client sent it. */
export interface SentWrite {
  readonly verb: "create" | "replace" | "patch" | "delete";
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly body: object;
  readonly subresource: string | undefined;
}

/** Returns writes that succeed unless `onWrite` throws. An object that it returns is the answer. */
export function writing(
  onWrite: (write: SentWrite) => unknown,
): Pick<ClusterClient, "create" | "replace" | "patch" | "delete"> {
  const write = async <T extends KubeObject>(sent: SentWrite): Promise<Stored<T>> => {
    const answer = await onWrite(sent);
    return answerOf<T>(typeof answer === "object" && answer !== null ? answer : {});
  };
  return {
    create: ({ plural }, body, { subresource } = {}) =>
      write({ verb: "create", plural, ...placeOf(body), body, subresource }),
    replace: ({ plural }, body, { subresource } = {}) =>
      write({ verb: "replace", plural, ...placeOf(body), body, subresource }),
    patch: ({ plural }, { namespace, name }, { body }, { subresource } = {}) =>
      write({ verb: "patch", plural, namespace, name, body, subresource }),
    delete: async ({ plural }, { namespace, name }, body = {}) => {
      await write({ verb: "delete", plural, namespace, name, body, subresource: undefined });
    },
  };
}

function placeOf({ metadata: { namespace, name = "" } = {} }: KubeObject): Pick<SentWrite, "namespace" | "name"> {
  return { namespace, name };
}
