import { describe, expect, test } from "vitest";
import { clusters, placementDefaults } from "../../../../src/api/resources.ts";
import { among, readClaims, readHost, readWorkloadObject } from "../../../../src/cli/simulation/host-state.ts";
import { deployments, namespaces, nodes, persistentVolumeClaims, pods } from "../../../../src/kube/resources.ts";
import { clientOf } from "../../../support/api-server/client.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { viewerOf } from "../../../support/api-server/rights.ts";

const { signal } = new AbortController();
const PROXY = { "legation.dev/proxy": "true" };
const MEMBERS = ["clusters", "nodes"];

/** A host with a member, and with proxies and a workload with wishes in two namespaces. */
function host(): MemoryCluster {
  const made = new MemoryCluster("host", "host");
  made.put(clusters, { metadata: { name: "west" } });
  made.put(nodes, { metadata: { name: "legation-west", labels: { "legation.dev/cluster": "west" } } });
  made.put(nodes, { metadata: { name: "worker" } });
  made.put(placementDefaults, { metadata: { name: "all" } });
  for (const namespace of ["shop", "team"]) {
    made.put(namespaces, { metadata: { name: namespace } });
    made.put(pods, { metadata: { namespace, name: "proxy", labels: PROXY } });
    made.put(pods, { metadata: { namespace, name: "own" } });
    const annotations = { "legation.dev/clusters": "west" };
    const labels = { "legation.dev/wishes": "true" };
    made.put(deployments, { metadata: { namespace, name: "web", labels, annotations } });
  }
  return made;
}

function namesOf(objects: readonly { readonly metadata: { readonly namespace?: string; readonly name: string } }[]) {
  return objects.map(({ metadata: { namespace, name } }) => (namespace === undefined ? name : `${namespace}/${name}`));
}

describe("the host's state", () => {
  test("has the members, the proxies and the wishes of all namespaces", async () => {
    const { host: seen, hidden } = await readHost(host().client, ["shop"], signal);
    expect(namesOf(seen.clusters)).toEqual(["west"]);
    expect(namesOf(seen.nodes)).toEqual(["legation-west"]);
    expect(namesOf(seen.proxies)).toEqual(["shop/proxy", "team/proxy"]);
    expect(namesOf(seen.defaults)).toEqual(["all"]);
    expect(seen.findWorkload?.("team", { kind: "Deployment", name: "web" })).toMatchObject({
      annotations: { "legation.dev/clusters": "west" },
    });
    expect(seen.findWorkload?.("team", { kind: "Deployment", name: "api" })).toBeUndefined();
    expect(hidden).toEqual([]);
  });

  test("has the account's own namespace where it may not read the others, and says what that hides", async () => {
    const client = clientOf(host(), { way: viewerOf("shop", ...MEMBERS) });
    const { host: seen, hidden } = await readHost(client, ["shop"], signal);
    expect(namesOf(seen.proxies)).toEqual(["shop/proxy"]);
    expect(namesOf(seen.namespaces)).toEqual(["shop"]);
    expect(seen.findWorkload?.("shop", { kind: "Deployment", name: "web" })).toBeDefined();
    expect(hidden.map(({ what }) => what)).toEqual([
      "the room that pods of other namespaces take",
      "PlacementDefaults",
    ]);
  });

  test("has no defaults on a host of an earlier version, which hides none", async () => {
    const made = host();
    made.serve(placementDefaults, false);
    expect(await readHost(made.client, [], signal)).toMatchObject({ host: { defaults: [] }, hidden: [] });
  });

  test("is not told where the account may not read members, without which no member can be chosen", async () => {
    const client = clientOf(host(), { way: viewerOf("shop", "nodes") });
    await expect(readHost(client, ["shop"], signal)).rejects.toMatchObject({ code: "Forbidden", resource: "clusters" });
  });
});

test("reads claims in the namespaces of pods that have some, and asks for no others", async () => {
  const made = host();
  made.put(persistentVolumeClaims, { metadata: { namespace: "shop", name: "data" } });
  const client = clientOf(made, { way: viewerOf("shop") });
  const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
  const podsWith = (spec: object) => ({ claims: [], spec: { containers: [], ...spec } });
  const workloads = [
    { namespace: "shop", pods: podsWith({ volumes }) },
    { namespace: "team", pods: podsWith({}) },
  ];
  const found = await readClaims(client, workloads, signal);
  expect([...found].map(([namespace, claims]) => [namespace, claims.length])).toEqual([["shop", 1]]);
});

test("prefers the workloads of a manifest to those of the host", () => {
  const others = () => ({ annotations: { from: "host" } });
  const find = among(new Map([["shop/Deployment/web", { annotations: { from: "manifest" } }]]), others);
  expect(find("shop", { kind: "Deployment", name: "web" })).toEqual({ annotations: { from: "manifest" } });
  expect(find("team", { kind: "Deployment", name: "web" })).toEqual({ annotations: { from: "host" } });
});

test("finds no workload that is not there", async () => {
  const { client } = host();
  const web = { kind: "Deployment", namespace: "shop", name: "web" } as const;
  expect(await readWorkloadObject(client, web, signal)).toMatchObject({ kind: "Deployment" });
  expect(await readWorkloadObject(client, { ...web, name: "api" }, signal)).toBeUndefined();
});
