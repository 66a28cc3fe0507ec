import { expect, test } from "vitest";
import { kubeletOf } from "../../../../src/cli/controller/command.ts";

const port = 10_250;

test.each([
  ["the address it listens on", "192.0.2.7", {}, {}, "192.0.2.7"],
  ["the pod's address, when it listens on every one", "::", {}, { POD_IP: "10.0.0.9" }, "10.0.0.9"],
  ["the address it listens on, also in a pod", "192.0.2.7", {}, { POD_IP: "10.0.0.9" }, "192.0.2.7"],
  ["what is written", "0.0.0.0", { nodeAddress: "legation.example" }, { POD_IP: "10.0.0.9" }, "legation.example"],
])("advertises the kubelet API at %s", (_what, host, input, env, address) => {
  expect(kubeletOf({ kubeletListen: { host, port }, ...input }, env)).toEqual({
    listen: { host, port },
    address,
    certificate: { kind: "own", hosts: [address] },
  });
});

test("serves no kubelet API without --kubelet-listen", () => {
  expect(kubeletOf({ nodeAddress: "192.0.2.7" }, { POD_IP: "10.0.0.9" })).toBeUndefined();
});

test("refuses every address without a node address", () => {
  expect(() => kubeletOf({ kubeletListen: { host: "::", port } }, {})).toThrow(/--kubelet-listen is every address/);
});

test("serves the kubelet API with the given certificate files", () => {
  const files = { kubeletCertFile: "tls.crt", kubeletKeyFile: "tls.key" };
  expect(kubeletOf({ kubeletListen: { host: "192.0.2.7", port }, ...files }, {})).toMatchObject({
    certificate: { kind: "files", certFile: "tls.crt", keyFile: "tls.key" },
  });
});

test("has a signer of the host sign the certificate when one is named", () => {
  const input = { kubeletListen: { host: "::", port }, kubeletCertificateSigner: "kubernetes.io/kubelet-serving" };
  expect(kubeletOf(input, { POD_IP: "10.0.0.9" })).toMatchObject({
    certificate: { kind: "signer", signer: "kubernetes.io/kubelet-serving", hosts: ["10.0.0.9"] },
  });
});
