import { expect, test } from "vitest";
import { openClusters, wantedClusters } from "../../../../src/cli/multicluster/clusters.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { type FakeMethods, fakeClient } from "../../../support/clients/fake-client.ts";
import { recordedSession } from "../session.ts";

const CLUSTERS = ["west", "east"].map((name) => ({
  metadata: { name, uid: name, resourceVersion: "1", labels: { region: name } },
  spec: { credentialsSecret: { name } },
}));

const HOST = {
  cluster: "host",
  list: async () => ({ items: CLUSTERS, resourceVersion: "1", size: 1 }),
  raw: async () => ({}),
};

/** Returns the names of the clusters that `--clusters TEXT` opens, as the session was asked for them. */
async function opened(
  text: string | undefined,
  host: FakeMethods = HOST,
  namespace = "default",
  told: string[] = [],
): Promise<readonly unknown[]> {
  const asked: unknown[] = [];
  const session = recordedSession({
    openReading: async (_choice, member) => {
      asked.push(member);
      return { ...fakeClient({}), listTable: unused, watchTable: unused };
    },
  });
  const wanted = text === undefined ? undefined : wantedClusters.parse(text);
  const clusters = await openClusters(fakeClient(host), wanted, { choice: {}, session, namespace });
  told.push(...session.err);
  expect(clusters.map(({ name }) => name)).toEqual(asked.map((member) => member ?? "host"));
  return asked;
}

function unused(): never {
  throw new Error("this test reads no table");
}

test.each<[string | undefined, unknown[]]>([
  [undefined, ["east", "west"]],
  ["west", ["west"]],
  ["west,north, west", ["north", "west"]],
  ["host,west", [undefined, "west"]],
  ["*,host", [undefined, "east", "west"]],
  ["region in (west)", ["west"]],
])("opens the clusters of %j, the host first", async (text, expected) => {
  expect(await opened(text)).toEqual(expected);
});

test.each(["", "region in (", "west,,east"])("refuses %j, which names no clusters", (text) => {
  expect(wantedClusters.safeParse(text).error?.issues[0]?.message).toContain(
    "write names, e.g. west,east or '*,host', or a selector of Clusters, e.g. region=eu",
  );
});

test("reads the host alone without access to members", async () => {
  expect(await opened("host", {})).toEqual([undefined]);
});

test("says what to do where the host does not lead to members", async () => {
  const raw = async (): Promise<never> => {
    throw kubeError("NotFound");
  };
  await expect(opened("west", { ...HOST, raw })).rejects.toMatchObject({
    message: "host: it does not serve access.legation.dev, by which members are reached",
    remedy: expect.stringContaining("legation install --access"),
  });
});

test("opens named members for a user who may not list Clusters, and tells others to name them", async () => {
  const list = async (): Promise<never> => {
    throw kubeError("Forbidden", "clusters is forbidden");
  };
  expect(await opened("west", { ...HOST, list })).toEqual(["west"]);
  await expect(opened("*", { ...HOST, list })).rejects.toMatchObject({
    message: "host: you may not list Clusters: clusters is forbidden",
    remedy: expect.stringContaining("name the members (--clusters west,east)"),
  });
});

test.each<[string | undefined, unknown[]]>([
  [undefined, ["east", "west"]],
  ["*,host", [undefined, "east", "west"]],
])(
  "opens for %j the members that have something of a user's namespace where Clusters may not be listed",
  async (text, expected) => {
    const told: string[] = [];
    const list: FakeMethods["list"] = async ({ plural }, { namespace } = {}) => {
      if (namespace !== "team") throw kubeError("Forbidden", `${plural} is forbidden`);
      const labels = { "legation.dev/whole": "true" };
      const job = { metadata: { name: "sum", labels, annotations: { "legation.dev/cluster": "east" } } };
      const items = plural === "jobs" ? [job] : [proxyPod({ spec: { nodeName: "legation-west" } }), proxyPod()];
      return { items, resourceVersion: "1", size: 1 };
    };
    expect(await opened(text, { ...HOST, list }, "team", told)).toEqual(expected);
    expect(told.join("")).toBe(
      "not shown: members without pods or whole Jobs of namespace team, which the ClusterRole legation-viewer lets you read\n",
    );
    await expect(opened(text, { ...HOST, list }, "other")).rejects.toThrow("you may not list Clusters");
    await expect(opened("region=eu", { ...HOST, list }, "team")).rejects.toMatchObject({
      message: "host: you may not list Clusters: clusters is forbidden",
      remedy: expect.stringContaining(
        "name the members (--clusters east,west for those with something of namespace team)",
      ),
    });
  },
);
