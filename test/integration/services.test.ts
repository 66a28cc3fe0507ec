import { describe, expect, onTestFinished, test } from "vitest";
import { COPY_LABEL, HOST_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE } from "../../src/api/keys.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { endpointSlices, events, pods, services } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { type AuditEvent, auditEvents, isWrite } from "../support/clusters/audit.ts";
import { numbered } from "../support/delegated/pods.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { withoutMemberRight } from "../support/legation/member-rights.ts";
import { legationOn } from "../support/legation/process.ts";
import { makeScene, PATIENT } from "../support/services/scene.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";
import type { Write } from "../support/write-gate/write-gate.ts";

const gated = useGatedLegation();
const clients = useClients();

/** Returns Legation's writes in west, in order. */
async function writesInWest(namespace: string): Promise<string[]> {
  const found = await auditEvents(
    memberCluster("west"),
    (event) =>
      event.user.username.startsWith("system:serviceaccount:legation-system:") &&
      isWrite(event) &&
      event.objectRef?.namespace === namespace,
    [namespace],
  );
  return found.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}`);
}

describe.concurrent("a Service of the host", () => {
  test("is copied before its pods run, without the fields that belong to the host alone", async (context) => {
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
    // `kubectl expose pod` creates this: all labels of the proxy are its selector.
    await scene.service("exposed", { selector: { app: "web", [PROXY_LABEL]: PROXY_LABEL_VALUE } });
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
    expect(copy.metadata.labels).toEqual({
      tier: "front",
      [HOST_LABEL]: expect.any(String),
      [COPY_LABEL]: "true",
      "endpointslice.kubernetes.io/skip-mirror": "true",
    });
    expect(copy.metadata.annotations?.note).toBe("kept");
    expect(ownerOf(copy)).toMatchObject({ namespace, name: "web", uid: source.metadata.uid });
    expect((await scene.inWest("headless")).spec).toMatchObject({ clusterIP: "None", type: "ClusterIP" });
    expect(await scene.find(west, services, "elsewhere")).toBeUndefined();
    expect(await scene.find(east, services, "web")).toBeUndefined();
    const made = ["create services", "create services", "create services", "create pods"];
    expect(await writesInWest(namespace)).toEqual(made);

    // Each cluster's own controller fills in the endpoints, with the one address that the pod has.
    const address = [proxy.status?.podIP];
    await eventuallyPasses(async () => {
      for (const client of [host, west]) {
        expect(await scene.endpoints(client, "web")).toEqual(address);
        expect(await scene.endpoints(client, "headless")).toEqual(address);
        expect(await scene.endpoints(client, "exposed")).toEqual(address);
      }
    }, PATIENT);
  });

  test("is written once for twenty pods, and removed with the last pod of its namespace there", async (context) => {
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

    // A pod that asks for the name keeps the copy, even without endpoints.
    await scene.run("client");
    const before = await scene.inWest("web");
    await Promise.all(names.map((name) => scene.end(name)));
    expect((await scene.inWest("web")).metadata.uid).toBe(before.metadata.uid);
    await scene.end("client");
    await scene.goes(west, services, "web");
    await eventuallyPasses(async () => {
      const { others } = await legationWrites(memberCluster("west"), namespace);
      expect(others).toEqual(["create services", "delete services"]);
    });
  });

  test("is copied if it comes after its pod, as Spark's does", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const driver = await scene.run("driver", { "spark-role": "driver" });
    await scene.service("driver-svc", { selector: { "spark-role": "driver" }, clusterIP: "None" });
    await scene.inWest("driver-svc");
    await eventuallyPasses(async () => {
      expect(await scene.endpoints(clients().west, "driver-svc")).toEqual([driver.status?.podIP]);
    }, PATIENT);
  });

  test("is copied where it has an endpoint, for a pod that only asks for it", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    await scene.service("db");
    await scene.run("client-west", {}, "west");
    await scene.run("client-east", {}, "east");
    await scene.run("db-0", { app: "db" }, "east");
    await eventuallyPasses(async () => {
      expect(await scene.find(clients().east, services, "db")).toBeDefined();
    }, PATIENT);
    expect(await scene.find(clients().west, services, "db")).toBeUndefined();
    // A label that is added later makes a pod an endpoint.
    const body = { metadata: { labels: { app: "db" } } };
    await clients().host.patch(pods, { namespace: scene.namespace, name: "client-west" }, { type: "merge", body });
    await scene.inWest("db");
  });

  test("has its copy changed, created anew and deleted with it", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west } = clients();
    const ref = { namespace: scene.namespace, name: "web" };
    await scene.service("web", {}, { labels: { old: "yes" } });
    await scene.run("web-0", { app: "web" });
    const first = await scene.inWest("web");

    const spec = { selector: { app: "web", color: "blue" }, ports: [{ port: 81, targetPort: 8080 }] };
    const metadata = { labels: { old: null, fresh: "yes" } };
    await host.patch(services, ref, { type: "merge", body: { metadata, spec } });
    const changed = await scene.inWest("web", ({ spec }) => spec?.ports?.[0]?.port === 81);
    expect(changed.spec).toMatchObject({ ...spec, clusterIP: first.spec?.clusterIP });
    expect(changed.metadata.labels).toMatchObject({ fresh: "yes" });
    expect(changed.metadata.labels).not.toHaveProperty("old");
    // No pod matches it any more, and it stays, as on the host.
    expect(changed.metadata.uid).toBe(first.metadata.uid);

    await west.patch(services, ref, { type: "merge", body: { spec: { selector: { app: "mine" } } } });
    await scene.inWest("web", (copy) => copy.spec?.selector?.app === "web");

    // A copy that no pod of the member uses is not made again.
    await host.patch(services, ref, { type: "merge", body: { spec: { selector: { color: null } } } });
    await scene.inWest("web", (copy) => copy.spec?.selector?.color === undefined);
    await west.delete(services, ref);
    const again = await scene.inWest("web", ({ metadata: { uid } }) => uid !== first.metadata.uid);
    const addresses = `its cluster IP there is ${again.spec?.clusterIP} now, and was ${first.spec?.clusterIP}`;
    await eventuallyPasses(async () => {
      const { items } = await host.list(events, { namespace: scene.namespace });
      const told = items.filter(({ reason }) => reason === "CopyDeleted").map(({ message }) => message);
      const words = `west: another client there deleted Service web, and it was made again: ${addresses}`;
      expect(told).toEqual([expect.stringContaining(words)]);
    });

    await host.delete(services, ref);
    const anew = await scene.service("web", { selector: { app: "web" } });
    const followed = await scene.inWest("web", (copy) => ownerOf(copy)?.uid === anew.metadata.uid);
    expect(followed.spec?.ports?.[0]?.port).toBe(80);

    // A Service cannot become headless in place, neither on the host nor in a member.
    await host.delete(services, ref);
    await scene.service("web", { clusterIP: "None" });
    await scene.inWest("web", (copy) => copy.spec?.clusterIP === "None");

    await host.delete(services, ref);
    await scene.goes(west, services, "web");
    expect(await scene.find(west, pods, "web-0")).toBeDefined();
  });

  test("is not copied over a member's own Service, and has an event", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { west } = clients();
    const foreign = await west.create(services, {
      metadata: { name: "web", namespace: scene.namespace },
      spec: { ports: [{ port: 99 }] },
    });
    await scene.service("web");
    await scene.run("web-0", { app: "web" });
    const why =
      "west: Service web is there already and was not made by Legation for this host: pods in west see that one";
    await scene.saysOn("Service", "web", why);
    expect(await scene.find(west, services, "web")).toEqual(foreign);
    await scene.end("web-0");
    await scene.run("web-1", { app: "web" });
    expect(await scene.find(west, services, "web")).toEqual(foreign);
  });

  test("keeps no pod from running if a member refuses it", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const quota = JSON.stringify({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "none", namespace: scene.namespace },
      spec: { hard: { services: "0" } },
    });
    await kubectl(memberCluster("west"), ["create", "-f", "-"], { input: quota });
    await eventuallyPasses(async () => {
      const args = ["get", "quota", "none", "-n", scene.namespace, "-o", "jsonpath={.status.hard.services}"];
      expect(await kubectl(memberCluster("west"), args)).toBe("0");
    }, PATIENT);
    await scene.service("web");
    await scene.run("web-0", { app: "web" });
    await scene.saysOn("Service", "web", "west: its API server refused Service web: ");
  });

  test("leads to its given endpoints alone in a member, once its selector is removed", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west } = clients();
    const { namespace } = scene;
    await scene.service("moving", { selector: { app: "web" } });
    await scene.run("web-0", { app: "web" });
    await eventuallyPasses(async () => expect(await scene.endpoints(west, "moving")).toHaveLength(1), PATIENT);
    const [former] = await scene.endpoints(west, "moving");
    const ref = { namespace, name: "moving" };
    await host.patch(services, ref, { type: "merge", body: { spec: { selector: null } } });
    await scene.inWest("moving", ({ spec }) => spec?.selector === undefined);
    // Endpoints of a removed selector stay in each cluster, and are mirrored now.
    await applyAll(hostCluster(), [
      {
        apiVersion: "v1",
        kind: "Endpoints",
        metadata: ref,
        subsets: [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ port: 80 }] }],
      },
    ]);
    const mirrored = async (client: ClusterClient): Promise<string[]> => {
      const labelSelector =
        "kubernetes.io/service-name=moving,endpointslice.kubernetes.io/managed-by!=endpointslice-controller.k8s.io";
      const { items } = await client.list(endpointSlices, { namespace, labelSelector });
      return items.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses));
    };
    await eventuallyPasses(async () => expect(await mirrored(host)).toContain("192.0.2.1"), PATIENT);
    await eventuallyPasses(async () => expect(await mirrored(west)).toContain("192.0.2.1"), PATIENT);
    expect((await mirrored(west)).toSorted()).toEqual((await mirrored(host)).toSorted());
    expect(await mirrored(west)).not.toContain(former);
  });

  test("is copied with its given endpoints, if it has no selector, where pods of its namespace are", async (context) => {
    const scene = await makeScene(clients(), context.onTestFinished);
    const { host, west, east } = clients();
    const { namespace } = scene;
    const { type, externalName } = { type: "ExternalName", externalName: "db.example.com" };
    await host.create(services, { metadata: { name: "outside", namespace }, spec: { type, externalName } });
    await host.create(services, { metadata: { name: "manual", namespace }, spec: { ports: [{ port: 5432 }] } });
    await host.create(endpointSlices, {
      metadata: { name: "manual-1", namespace, labels: { "kubernetes.io/service-name": "manual" } },
      addressType: "IPv4",
      endpoints: [{ addresses: ["192.0.2.1"], nodeName: "host-0", zone: "here" }],
      ports: [{ port: 5432, name: "" }],
    });
    await scene.run("client");
    expect((await scene.inWest("outside")).spec).toMatchObject({ type, externalName });
    await scene.inWest("manual");
    await eventuallyPasses(async () => expect(await scene.endpoints(west, "manual")).toEqual(["192.0.2.1"]), PATIENT);
    const slice = await west.get(endpointSlices, { namespace, name: "manual-1" });
    expect(slice.endpoints).toEqual([{ addresses: ["192.0.2.1"], conditions: {} }]);
    expect(await scene.find(east, services, "outside")).toBeUndefined();

    const body = { endpoints: [{ addresses: ["192.0.2.2"] }] };
    await host.patch(endpointSlices, { namespace, name: "manual-1" }, { type: "merge", body });
    await eventuallyPasses(async () => expect(await scene.endpoints(west, "manual")).toEqual(["192.0.2.2"]), PATIENT);
    await host.delete(services, { namespace, name: "manual" });
    await scene.goes(west, services, "manual");
    await scene.goes(west, endpointSlices, "manual-1");
    await scene.end("client");
    await scene.goes(west, services, "outside");
  });
});

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  const points = [
    ["that makes the copy", "POST", ""],
    ["that changes the copy", "PATCH", "/web"],
    ["that removes the copy", "DELETE", "/web"],
  ] as const;
  test.each(points)("finishes after a restart: the write %s", async (_, method, path) => {
    const scene = await makeScene(clients());
    const { legation, trap, release } = gated();
    onTestFinished(release);
    const { host, west } = clients();
    const ref = { namespace: scene.namespace, name: "web" };
    let killed = false;
    trap("member", {
      when,
      catches: (write: Write) =>
        write.method === method && write.path === `/api/v1/namespaces/${scene.namespace}/services${path}`,
      onCaught: async () => {
        await legation.controller.stop("SIGKILL");
        killed = true;
      },
    });
    const follow = async (): Promise<void> => {
      await eventually(() => killed, { ...PATIENT, what: "the write" });
      await legation.controller.start();
    };
    await scene.service("web");
    const live = async (): Promise<void> => {
      await scene.run("web-0", { app: "web" });
      await scene.inWest("web");
      await host.patch(services, ref, { type: "merge", body: { spec: { ports: [{ port: 81 }] } } });
      await scene.inWest("web", ({ spec }) => spec?.ports?.[0]?.port === 81);
      await host.delete(services, ref);
      await scene.goes(west, services, "web");
    };
    await Promise.all([live(), follow()]);
    expect(await scene.find(west, pods, "web-0")).toBeDefined();
    const copies = await auditEvents(memberCluster("west"), isSecondCopy(scene.namespace), [scene.namespace]);
    expect(copies.length).toBeLessThan(2);
  });
});

/** Matches the successful creations of copies of the one Service. */
function isSecondCopy(namespace: string): (event: AuditEvent) => boolean {
  return ({ verb, objectRef, responseStatus }) =>
    verb === "create" &&
    objectRef?.resource === "services" &&
    objectRef.namespace === namespace &&
    responseStatus?.code === 201;
}

test("deletes the copies of Services that were deleted while a member hung or no controller ran", async () => {
  const scene = await makeScene(clients());
  const { legation } = gated();
  const { host, west } = clients();
  const member = memberCluster("west");
  onTestFinished(() => member.mend());
  await scene.service("one", { selector: { app: "web" } });
  await scene.service("two", { selector: { app: "web" } });
  await scene.run("web-0", { app: "web" });
  await Promise.all([scene.inWest("one"), scene.inWest("two")]);
  await member.apiServer.freeze();
  await host.delete(services, { namespace: scene.namespace, name: "one" });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  await member.apiServer.thaw();
  await scene.goes(west, services, "one");
  await legation.controller.stop("SIGKILL");
  await host.delete(services, { namespace: scene.namespace, name: "two" });
  await legation.controller.start();
  await scene.goes(west, services, "two");
  expect(await scene.find(west, pods, "web-0")).toBeDefined();
});

test("runs pods in a member that joined without the rights to copy Services, and copies once it has them", async () => {
  const scene = await makeScene(clients());
  const { legation } = gated();
  const { west } = clients();
  const restore = await withoutMemberRight(west, "services");
  onTestFinished(restore);
  await legation.controller.stop();
  await legation.controller.start();
  await scene.service("web");
  await Promise.all(["web-0", "web-1"].map((name) => scene.run(name, { app: "web" })));
  // At least one pod has waited; the first may have been faster than the Service's event.
  const placedAfterMs = async (name: string): Promise<number> => {
    const proxy = await scene.run(name, { app: "web" });
    const delegate = await west.get(pods, { namespace: scene.namespace, name });
    const [made = 0, placed = 0] = [proxy, delegate].map(({ metadata }) =>
      Date.parse(metadata.creationTimestamp ?? ""),
    );
    return placed - made;
  };
  // Any single one may be late for other reasons.
  const quickest = Math.min(...(await Promise.all(["web-2", "web-3", "web-4"].map(placedAfterMs))));
  expect(quickest).toBeLessThan(5000);
  expect(await scene.find(west, services, "web")).toBeUndefined();
  await restore();
  await scene.inWest("web");
});

test("`legation status` shows in which clusters a Service has endpoints, and from where it leads to them", async () => {
  const scene = await makeScene(clients(), onTestFinished);
  await scene.service("web");
  await scene.run("web-0", { app: "web" });
  await scene.run("web-1", { app: "web" }, "east");
  await eventuallyPasses(async () => {
    const args = ["status", "service/web", "-n", scene.namespace, "-o", "json"];
    const { code, stdout } = await legationOn(hostCluster(), ...args);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      clusters: [
        { ready: 0, reaches: [], unreached: [{ cluster: "east" }, { cluster: "west" }] },
        { cluster: "east", ready: 1, reaches: [{ cluster: "east", how: "local" }], unreached: [{ cluster: "west" }] },
        { cluster: "west", ready: 1, reaches: [{ cluster: "west", how: "local" }], unreached: [{ cluster: "east" }] },
      ],
    });
  }, PATIENT);
});
