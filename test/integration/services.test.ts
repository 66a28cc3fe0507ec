import { describe, expect, test } from "vitest";
import { COPY_LABEL, HOST_LABEL } from "../../src/api/keys.ts";
import { pods, services } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { auditEvents, isWrite } from "../support/clusters/audit.ts";
import { numbered } from "../support/delegated/pods.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { makeScene, PATIENT } from "../support/services/scene.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";

useGatedLegation();
const clients = useClients();

/** Legation's writes in west, in their order. */
async function writesInWest(namespace: string): Promise<string[]> {
  const found = await auditEvents(
    memberCluster("west"),
    (event) =>
      event.user.username.startsWith("system:serviceaccount:legation-system:") &&
      isWrite(event) &&
      event.objectRef?.namespace === namespace,
  );
  return found.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`);
}

describe.concurrent("a Service of the host", () => {
  test("is where its pods run before they do, with what does not belong to the host alone", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west, east } = clients();
    const { namespace } = scene;
    const source = await scene.service(
      "web",
      {
        type: "LoadBalancer",
        externalIPs: ["192.0.2.7"],
        ports: [
          { name: "http", port: 80, targetPort: "http", appProtocol: "http" },
          { name: "dns", port: 53, protocol: "UDP" },
        ],
        sessionAffinity: "ClientIP",
        publishNotReadyAddresses: true,
      },
      { labels: { tier: "front" }, annotations: { note: "kept" } },
    );
    await scene.service("headless", { selector: { app: "web" }, clusterIP: "None" });
    await scene.service("elsewhere");
    const proxy = await scene.run("web-0", { app: "web" });

    const copy = await scene.inWest("web");
    expect(copy.spec).toMatchObject({
      type: "ClusterIP",
      selector: { app: "web" },
      ports: [
        { name: "http", port: 80, targetPort: "http", protocol: "TCP", appProtocol: "http" },
        { name: "dns", port: 53, targetPort: 53, protocol: "UDP" },
      ],
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
      publishNotReadyAddresses: true,
    });
    expect(copy.spec?.externalIPs).toBeUndefined();
    expect(copy.spec?.ports?.some(({ nodePort }) => nodePort !== undefined)).toBe(false);
    expect(copy.spec?.clusterIP).toMatch(/\d/);
    expect(copy.metadata.labels).toEqual({ tier: "front", [HOST_LABEL]: expect.any(String), [COPY_LABEL]: "true" });
    expect(copy.metadata.annotations?.note).toBe("kept");
    expect(ownerOf(copy)).toMatchObject({ namespace, name: "web", uid: source.metadata.uid });
    expect((await scene.inWest("headless")).spec).toMatchObject({ clusterIP: "None", type: "ClusterIP" });
    expect(await scene.find(west, services, "elsewhere")).toBeUndefined();
    expect(await scene.find(east, services, "web")).toBeUndefined();
    expect(await writesInWest(namespace)).toEqual(["create services", "create services", "create pods"]);

    // Each cluster's own controller fills in the endpoints, with the one address that the pod has.
    const address = [proxy.status?.podIP];
    await eventuallyPasses(async () => {
      for (const client of [host, west]) {
        expect(await scene.endpoints(client, "web")).toEqual(address);
        expect(await scene.endpoints(client, "headless")).toEqual(address);
      }
    }, PATIENT);
  });

  test("is one write for twenty pods, and goes with the last of its namespace there", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { west } = clients();
    const { namespace } = scene;
    await scene.service("web");
    const names = numbered("web", 20);
    await Promise.all(names.map((name) => scene.run(name, { app: "web" })));
    const there = await legationWrites(memberCluster("west"), namespace);
    expect(there.others).toEqual(["create services"]);
    expect([...there.pods.values()]).toEqual(names.map(() => ["create pods"]));
    expect((await legationWrites(hostCluster(), namespace)).others).toEqual([]);

    // One that asks for the name keeps it, though nobody answers there any more.
    await scene.run("client");
    await Promise.all(names.map((name) => scene.end(name)));
    const before = await scene.inWest("web");
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    expect((await scene.inWest("web")).metadata.uid).toBe(before.metadata.uid);
    await scene.end("client");
    await scene.goes(west, services, "web");
    const { others } = await legationWrites(memberCluster("west"), namespace);
    expect(others).toEqual(["create services", "delete services"]);
  });

  test("that comes after its pod, as Spark's does, follows it", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const driver = await scene.run("driver", { "spark-role": "driver" });
    await scene.service("driver-svc", { selector: { "spark-role": "driver" }, clusterIP: "None" });
    await scene.inWest("driver-svc");
    await eventuallyPasses(async () => {
      expect(await scene.endpoints(clients().west, "driver-svc")).toEqual([driver.status?.podIP]);
    }, PATIENT);
  });

  test("is there for a pod that only asks for it, where it has an endpoint", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    await scene.service("db");
    await scene.run("client-west", {}, "west");
    await scene.run("client-east", {}, "east");
    await scene.run("db-0", { app: "db" }, "east");
    await eventuallyPasses(async () => {
      expect(await scene.find(clients().east, services, "db")).toBeDefined();
    }, PATIENT);
    expect(await scene.find(clients().west, services, "db")).toBeUndefined();
    // A label that is given later makes a pod an endpoint.
    const body = { metadata: { labels: { app: "db" } } };
    await clients().host.patch(pods, { namespace: scene.namespace, name: "client-west" }, { type: "merge", body });
    await scene.inWest("db");
  });
});
