import type { ClusterClient } from "../../../src/kube/client.ts";

/** A client of which a test says what the used methods do; any other call fails the test. */
export function fakeClient(methods: Partial<ClusterClient>): ClusterClient {
  const unexpected = (): never => {
    throw new Error("this request was not expected");
  };
  return {
    cluster: "fake",
    get: unexpected,
    find: unexpected,
    list: unexpected,
    create: unexpected,
    createSubresource: unexpected,
    replace: unexpected,
    patch: unexpected,
    delete: unexpected,
    raw: unexpected,
    watch: unexpected,
    upgrade: unexpected,
    stream: unexpected,
    close: async () => {},
    ...methods,
  };
}
