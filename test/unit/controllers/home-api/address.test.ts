import { describe, expect, test, vi } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { HomeAddresses, serverForMembers } from "../../../../src/controllers/home-api/address.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { credentialsFromKubeconfigText } from "../../../../src/kube/kubeconfig.ts";
import type { HomeApi } from "../../../../src/pods/home-api.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { listing } from "../../../support/builders/answers.ts";
import { cluster } from "../../../support/builders/member.ts";
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

describe("the way to the host through a member's agent", () => {
  const ca = { "ca.crt": "-----BEGIN CERTIFICATE-----" };
  const rootCa = {
    metadata: { namespace: "kube-system", name: "kube-root-ca.crt", uid: "u", resourceVersion: "1" },
    data: ca,
  };
  let told: string | undefined;

  async function wayOf(spec: Partial<Cluster["spec"]>, server?: string): Promise<HomeApi> {
    const clock = new FakeClock();
    const host = quietClient([rootCa]);
    const log = createLogger({ level: "silent" });
    const addresses = new HomeAddresses({ host, server, agentAddress: () => told, onChange: () => {}, clock, log });
    await addresses.start(new AbortController().signal);
    const way = addresses.of({
      metadata: { name: "west", uid: "c", resourceVersion: "1" },
      spec: { credentialsSecret: { name: "west" }, ...spec },
    });
    await addresses.stop();
    return way;
  }

  test("is known once the agent has told its Service's address, and precedes the address for all members", async () => {
    told = undefined;
    const spec = { agent: { homeAPI: true } };
    expect(await wayOf(spec, "https://10.0.0.1:6443")).toMatchObject({
      state: "pending",
      message: expect.stringContaining("legation join west --agent --home-api-through-agent"),
    });
    told = "10.96.7.7";
    const address = { host: "kubernetes.default.svc", port: "443", ip: "10.96.7.7" };
    expect(await wayOf(spec, "https://10.0.0.1:6443")).toEqual({ state: "known", address });
  });

  test.each<[string, Partial<Cluster["spec"]>]>([
    ["the Cluster names an address", { agent: { homeAPI: true }, homeAPI: { server: "https://10.0.0.2" } }],
    ["its pods are not to use the agent", { agent: {} }],
    ["it has no agent", {}],
  ])("is not taken where %s", async (_, spec) => {
    told = "10.96.7.7";
    expect(await wayOf(spec, "https://10.0.0.2")).toEqual({
      state: "known",
      address: { host: "10.0.0.2", port: "443" },
    });
  });
});

test("tells callers that wait for the host's authority that there is none, however late", async () => {
  const clock = new FakeClock();
  const onChange = vi.fn<() => void>();
  const answer = Promise.withResolvers<ClusterClient["list"]>();
  const host = quietClient([], { list: async (resource) => (await answer.promise)(resource) });
  const log = createLogger({ level: "silent" });
  const agentAddress = (): undefined => undefined;
  const addresses = new HomeAddresses({ host, server: "https://10.0.0.1:6443", agentAddress, onChange, clock, log });
  const started = addresses.start(new AbortController().signal);
  await clock.advance(5_000);
  await started;
  const west = cluster("west");
  expect(addresses.of(west)).toMatchObject({ state: "pending" });
  expect(onChange).not.toHaveBeenCalled();
  answer.resolve(listing([]));
  await clock.advance(10);
  expect(addresses.of(west)).toMatchObject({ state: "unknown" });
  expect(onChange).toHaveBeenCalledOnce();
  await addresses.stop();
});
