import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { listing, silentWatch } from "../../support/builders/answers.ts";
import { type FakeMethods, fakeClient } from "../../support/clients/fake-client.ts";

/** Returns a client whose watches stay silent, and whose lists return these items. */
export function quietClient(items: readonly KubeObject[], methods: FakeMethods = {}): ClusterClient {
  return fakeClient({ list: listing(items), watch: silentWatch, ...methods });
}
