import { expect, test } from "vitest";
import { virtualNodeName } from "../../../../../src/api/keys.ts";
import { servicePathGroups } from "../../../../../src/cli/explain/installation/service-path.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { limits, stored } from "./given.ts";

/** A Service with a ready pod in each of these clusters, of which `joined` are in one network. `dial`: the API server's words. */
async function findings(
  clusters: readonly string[],
  { joined = [], labels = {}, dial }: { joined?: readonly string[]; labels?: object; dial?: string },
): Promise<string[]> {
  const slice = {
    metadata: {
      ...stored,
      name: "web-1",
      labels: { "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io" },
    },
    ports: [{ name: "", port: 8080 }],
    endpoints: clusters.map((cluster) => ({
      addresses: ["10.1.0.7"],
      conditions: { ready: true },
      nodeName: cluster === "" ? "own" : virtualNodeName(cluster),
      targetRef: { kind: "Pod", namespace: "shop", name: `web-${cluster || "host"}`, uid: cluster },
    })),
  };
  const lists: Readonly<Record<string, object[]>> = {
    endpointslices: [slice],
    clusters: clusters.map((name) => ({
      metadata: { ...stored, name },
      spec: { credentialsSecret: { name }, ...(joined.includes(name) ? { network: "corp" } : {}) },
    })),
  };
  const host = fakeClient({
    find: async ({ plural }) => {
      if (plural === "configmaps") return { metadata: stored, data: { id: "a", network: "corp" } };
      if (plural !== "services") return undefined;
      return {
        metadata: { ...stored, name: "web", namespace: "shop", labels },
        spec: { selector: { app: "web" }, ports: [{ port: 80 }] },
      };
    },
    list: async ({ plural }) => ({ items: lists[plural] ?? [], resourceVersion: "1" }),
    stream: async () => ({
      status: 503,
      headers: {},
      text: JSON.stringify({ kind: "Status", message: `error trying to reach service: ${dial ?? "EOF"}` }),
    }),
    upgrade: async () => ({
      status: 403,
      headers: {},
      text: JSON.stringify({ kind: "Status", message: 'User "u" cannot create resource "pods/portforward"' }),
    }),
  });
  const groups = await servicePathGroups(host, { namespace: "shop", name: "web", port: "80" }, limits);
  return groups.flatMap(({ name, findings: all }) =>
    all.map(({ state, what }) => `${name}: ${state} ${what.replace(/ in \d+ ms.*/, "")}`),
  );
}

test("connects from the host to joined members, and says what to run in theirs", async () => {
  expect(await findings(["west", "east"], { joined: ["west", "east"] })).toEqual([
    "From this cluster: OK east: pod web-east at 10.1.0.7:8080 took a connection of the API server",
    "From this cluster: OK west: pod web-west at 10.1.0.7:8080 took a connection of the API server",
    'From east: SKIP its own pods: pod web-east at 10.1.0.7:8080: User "u" cannot create resource "pods/portforward"',
    "From east: SKIP west: not probed, since only pods in east take this way",
    "From west: SKIP east: not probed, since only pods in west take this way",
    'From west: SKIP its own pods: pod web-west at 10.1.0.7:8080: User "u" cannot create resource "pods/portforward"',
  ]);
});

test.each([
  [
    "dial tcp 10.1.0.7:8080: i/o timeout",
    "FAIL west: pod web-west at 10.1.0.7:8080: dial tcp 10.1.0.7:8080: i/o timeout",
  ],
  ["address not allowed", "SKIP west: pod web-west at 10.1.0.7:8080: API servers lead to no loopback address"],
])("tells %s", async (dial, said) => {
  expect((await findings(["west"], { dial }))[0]).toBe(`From this cluster: ${said}`);
});

test("probes no way between the clusters of a whole Service", async () => {
  const [first] = await findings(["west"], { labels: { "legation.dev/whole": "true" } });
  expect(first).toBe("From this cluster: INFO west: of a whole Service, each cluster has its own pods alone");
});
