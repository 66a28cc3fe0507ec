import { expect, test } from "vitest";
import type { Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { storeCredentials } from "../../../../src/cli/join/credentials.ts";
import { secrets } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const expires = "2026-01-01T00:00:00Z";
const change = { annotations: { "legation.dev/token-expires": expires }, kubeconfig: "ours" };
const labels = { "legation.dev/cluster": "west" };
const annotations = { "legation.dev/token-expires": "2020-01-01T00:00:00Z" };

function secret(kubeconfig: string, resourceVersion: string): Stored<Secret> {
  const metadata = {
    name: "member-west",
    namespace: "legation-system",
    uid: "u",
    resourceVersion,
    labels,
    annotations,
  };
  return { metadata, data: { kubeconfig: btoa(kubeconfig) } };
}

test.each([
  ["created", undefined],
  ["changed", secret("earlier", "1")],
])("refuses to overwrite a Secret that another client has %s since it was read", async (_how, read) => {
  let held = read;
  const refuse = (code: "AlreadyExists" | "Conflict"): never => {
    throw kubeError(code, code, { cluster: "host", verb: "write", resource: "secrets" });
  };
  const host = fakeClient({
    find: async () => {
      held = secret("theirs", "7");
      return read;
    },
    create: async () => refuse("AlreadyExists"),
    patch: async (_resource, _ref, { body }) => {
      expect(body).toMatchObject({ metadata: { resourceVersion: "1" } });
      return refuse("Conflict");
    },
  });
  await expect(storeCredentials("west", change, { host, signal })).rejects.toMatchObject({
    exit: "refused",
    message: expect.stringContaining("another client wrote it meanwhile"),
  });
  expect(held).toEqual(secret("theirs", "7"));
});

test("keeps what is beside the credentials in the Secret of an earlier join", async () => {
  const host = new MemoryCluster("host", "host-1");
  const ref = { namespace: "legation-system", name: "member-west" };
  const metadata = { ...ref, labels: { ...labels, app: "x" }, annotations };
  host.put(secrets, Object.assign({ metadata }, { data: { kubeconfig: btoa("earlier"), other: btoa("1") } }));
  await storeCredentials("west", change, { host: host.client, signal });
  expect(host.peek<Secret>(secrets, ref)).toMatchObject({
    metadata: { labels: { ...labels, app: "x" }, annotations: { "legation.dev/token-expires": expires } },
    data: { kubeconfig: btoa("ours"), other: btoa("1") },
  });
});
