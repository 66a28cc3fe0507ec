import { describe, expect, test, vi } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { HomeAddresses, serverForMembers } from "../../../../src/controllers/home-api/address.ts";
import { credentialsFromKubeconfigText } from "../../../../src/kube/kubeconfig.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { quietClient } from "../quiet-client.ts";

function kubeconfig(cluster: object): string {
  return JSON.stringify({
    clusters: [{ name: "host", cluster }],
    users: [{ name: "admin", user: { token: "t" } }],
    contexts: [{ name: "host", context: { cluster: "host", user: "admin" } }],
    "current-context": "host",
  });
}

describe("the address in Legation's own kubeconfig", () => {
  const server = "https://10.0.0.1:6443";
  test.each<[string, object, string | undefined]>([
    ["serves members, too", { server }, server],
    ["does not serve members if it is a loopback address", { server: "https://127.0.0.1:6443" }, undefined],
    ["does not serve members if it is a Service's", { server: "https://kubernetes.default.svc" }, undefined],
    ["does not serve members if it has a path", { server: "https://gateway/k8s/clusters/one" }, undefined],
    ["does not serve members if a proxy leads there", { server, "proxy-url": "http://proxy:3128" }, undefined],
    ["does not serve members if its certificate has another name", { server, "tls-server-name": "api" }, undefined],
    [
      "does not serve members if its certificate is not verified",
      { server, "insecure-skip-tls-verify": true },
      undefined,
    ],
  ])("%s", (_, cluster, expected) => {
    const credentials = credentialsFromKubeconfigText(kubeconfig(cluster), { allowExec: false, env: {} });
    expect(serverForMembers(credentials)).toBe(expected);
  });

  test("does not serve members if it is in-cluster", () => {
    const inCluster = {
      server: "https://10.96.0.1:443",
      source: "service account",
      insecureSkipTlsVerify: false,
      identity: () => ({}),
      refresh: () => {},
    };
    expect(serverForMembers(inCluster)).toBeUndefined();
  });
});

test("tells callers that wait for the host's authority that there is none, however late", async () => {
  const clock = new FakeClock();
  const onChange = vi.fn<() => void>();
  const answer = Promise.withResolvers<object>();
  const host = quietClient([], { list: (() => answer.promise) as never });
  const log = createLogger({ level: "silent" });
  const agentAddress = (): undefined => undefined;
  const addresses = new HomeAddresses({ host, server: "https://10.0.0.1:6443", agentAddress, onChange, clock, log });
  const started = addresses.start(new AbortController().signal);
  await clock.advance(5_000);
  await started;
  const cluster: Stored<Cluster> = {
    metadata: { name: "west", uid: "c", resourceVersion: "1" },
    spec: { credentialsSecret: { name: "west" } },
  };
  expect(addresses.of(cluster)).toMatchObject({ state: "pending" });
  expect(onChange).not.toHaveBeenCalled();
  answer.resolve({ items: [], resourceVersion: "1", size: 0 });
  await clock.advance(10);
  expect(addresses.of(cluster)).toMatchObject({ state: "unknown" });
  expect(onChange).toHaveBeenCalledOnce();
  await addresses.stop();
});
