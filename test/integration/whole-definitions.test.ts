import { beforeAll, expect, test } from "vitest";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import { events } from "../../src/kube/resources.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { allowTypes, forbidTypes } from "../support/legation/allow-types.ts";

// The host and the people of east have a definition of gizmos; west has none.
useLegation();
const clients = useClients();
const GROUP = "shop.example.com";
const NAME = `gizmos.${GROUP}`;
const CRD = `customresourcedefinition/${NAME}`;

const version = (name: string, storage: boolean, columns: readonly string[] = []): object => ({
  name,
  served: true,
  storage,
  additionalPrinterColumns: columns.map((column) => ({ name: column, type: "string", jsonPath: `.spec.${column}` })),
  schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
});

async function define(cluster: Cluster, ...versions: readonly object[]): Promise<void> {
  const names = { kind: "Gizmo", listKind: "GizmoList", plural: "gizmos", singular: "gizmo" };
  const spec = { group: GROUP, scope: "Namespaced", names, versions };
  await applyAll(cluster, [
    { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: NAME }, spec },
  ]);
}

/** Returns names of the versions, and the columns of the first one. */
async function shapeIn(cluster: Cluster): Promise<string> {
  const path = "{.spec.versions[*].name} {.spec.versions[0].additionalPrinterColumns[*].name}";
  return (await kubectl(cluster, ["get", CRD, "-o", `jsonpath=${path}`])).trim();
}

async function followsMessage(): Promise<string | undefined> {
  const { status } = await clients().host.get(delegatedTypes, { name: NAME });
  return status?.conditions?.find(({ type }) => type === "DefinitionFollows")?.message;
}

beforeAll(async () => {
  const [host, west, east] = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const joined = { host, members: { west, east } };
  afterFile(async () => {
    await forbidTypes([NAME], joined);
    for (const cluster of [host, west, east]) await kubectl(cluster, ["delete", "--ignore-not-found", CRD]);
  });
  await define(host, version("v1", true, ["size"]));
  await define(east, version("v1", true, ["own"]));
  for (const cluster of [host, east]) await kubectl(cluster, ["wait", "--for=condition=Established", CRD]);
  await allowTypes([NAME], joined, ["--definitions"]);
});

test("a definition that follows is given to the member that lacks it, and leaves the other member's own alone", async () => {
  const [host, west, east] = [hostCluster(), memberCluster("west"), memberCluster("east")];
  await eventuallyPasses(async () => expect(await shapeIn(west)).toBe("v1 size"));
  await eventuallyPasses(async () =>
    expect(await followsMessage()).toBe(
      `east: CustomResourceDefinition ${NAME} is there already and was not made by Legation for this host`,
    ),
  );
  await eventuallyPasses(async () => {
    const { items } = await clients().host.list(events, { namespace: "default" });
    const ofType = items.filter(({ involvedObject: { kind, name } }) => kind === "DelegatedType" && name === NAME);
    expect(ofType.map(({ reason }) => reason)).toContain("NotInMember");
  });
  const namespace = await freshNamespace([host, west, east], { labels: { [DELEGATION_LABEL]: "annotated" } });
  const metadata = { name: "one", annotations: { [WHOLE_KEY]: "true" } };
  const gizmo = { apiVersion: `${GROUP}/v1`, kind: "Gizmo", metadata, spec: { size: "1" } };
  await applyAll(host, [gizmo], ["-n", namespace]);
  for (const member of [west, east]) {
    await eventually(
      () => kubectl(member, ["get", "gizmo/one", "-n", namespace, "-o", "name"]).catch(() => undefined),
      {
        what: "the copy",
        timeoutMs: 30_000,
      },
    );
  }
  await define(host, version("v1", true, ["size", "color"]));
  await eventuallyPasses(async () => expect(await shapeIn(west)).toBe("v1 size color"));
  expect(await shapeIn(east)).toBe("v1 own");
});

test("what an operator of the member makes with the labels and annotations of a copy is left to it", async () => {
  const [host, west, east] = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const namespace = await freshNamespace([host, west, east], { labels: { [DELEGATION_LABEL]: "annotated" } });
  const gizmo = (name: string): object => ({
    apiVersion: `${GROUP}/v1`,
    kind: "Gizmo",
    metadata: { name, annotations: { [WHOLE_KEY]: "true", "legation.dev/clusters": "west" } },
  });
  const copyOf = (name: string): Promise<string> =>
    eventually(() => kubectl(west, ["get", `gizmo/${name}`, "-n", namespace, "-o", "json"]).catch(() => undefined), {
      what: "the copy",
    });
  await applyAll(host, [gizmo("one")], ["-n", namespace]);
  const { labels, annotations } = JSON.parse(await copyOf("one")).metadata;
  expect(labels).toMatchObject({ [WHOLE_KEY]: "true" });
  const metadata = { name: "derived", labels, annotations };
  const containers = [{ name: "main", image: "localhost/busybox:1" }];
  const resources = { requests: { storage: "1Gi" } };
  await applyAll(
    west,
    [
      { apiVersion: "v1", kind: "Pod", metadata, spec: { containers } },
      { apiVersion: "v1", kind: "Secret", metadata },
      {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata,
        spec: { accessModes: ["ReadWriteOnce"], resources },
      },
    ],
    ["-n", namespace],
  );
  // The controller has seen them by the end of another object.
  await applyAll(host, [gizmo("two")], ["-n", namespace]);
  await copyOf("two");
  await kubectl(host, ["delete", "gizmo/two", "-n", namespace, "--timeout=60s"]);
  const derived = ["pod/derived", "secret/derived", "pvc/derived"];
  const path = "{.items[*].metadata.name}{.items[*].metadata.deletionTimestamp}";
  expect(await kubectl(west, ["get", ...derived, "-n", namespace, "-o", `jsonpath=${path}`])).toBe(
    "derived derived derived",
  );
});

test("a definition whose stored version changed stays as it was in the member, with the reason", async () => {
  const [host, west] = [hostCluster(), memberCluster("west")];
  await eventuallyPasses(async () => expect(await shapeIn(west)).toContain("v1 size"));
  const before = await shapeIn(west);
  await define(host, version("v1", false, ["size", "weight"]), version("v2", true));
  await eventuallyPasses(async () =>
    expect(await followsMessage()).toContain("west: objects are stored there in version v1 and here in v2"),
  );
  expect(await shapeIn(west)).toBe(before);
  await define(host, version("v1", true, ["size", "weight"]), version("v2", false));
  await eventuallyPasses(async () => expect(await shapeIn(west)).toBe("v1 v2 size weight"));
});

test("a definition that the host loses stays in the member, and follows again once the host has it", async () => {
  const [host, west] = [hostCluster(), memberCluster("west")];
  await eventuallyPasses(async () => expect(await shapeIn(west)).toContain("v1"));
  const uid = await kubectl(west, ["get", CRD, "-o", "jsonpath={.metadata.uid}"]);
  await kubectl(host, ["delete", CRD, "--timeout=60s"]);
  await eventuallyPasses(async () =>
    expect(await followsMessage()).toBe(`this cluster has no CustomResourceDefinition ${NAME}`),
  );
  await define(host, version("v1", true, ["shape"]), version("v2", false));
  await eventuallyPasses(async () => expect(await shapeIn(west)).toBe("v1 v2 shape"));
  expect(await kubectl(west, ["get", CRD, "-o", "jsonpath={.metadata.uid}"])).toBe(uid);
}, 120_000);
