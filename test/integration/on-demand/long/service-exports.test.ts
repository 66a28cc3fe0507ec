import { expect, onTestFinished, test } from "vitest";
import type { ServiceExport } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { services } from "../../../../src/kube/resources.ts";
import { useClients } from "../../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../../support/harness/clusters.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { installServiceExports, removeServiceExports, serviceExportsIn } from "../../../support/services/mcs-api.ts";
import { makeScene, PATIENT } from "../../../support/services/scene.ts";
import { useGatedLegation } from "../../../support/write-gate/gated-legation.ts";
import type { Write } from "../../../support/write-gate/write-gate.ts";

const serviceExports = serviceExportsIn("v1beta1");
const gated = useGatedLegation();
const clients = useClients();

test("exports a Service that the host exports from the members that run it, where they have the API", async () => {
  const scene = await makeScene(clients());
  const { legation, trap, release } = gated();
  onTestFinished(release);
  const { host, west, east } = clients();
  const { namespace } = scene;
  await Promise.all([hostCluster(), memberCluster("west")].map((cluster) => installServiceExports(cluster)));
  onTestFinished(async () => {
    await Promise.all([hostCluster(), memberCluster("west")].map(removeServiceExports));
  });
  // The controller looks for the API when it starts, and once a minute.
  await legation.controller.stop();
  await legation.controller.start();
  await scene.service("web");
  await scene.run("web-0", { app: "web" });
  const exported = {
    apiVersion: "multicluster.x-k8s.io/v1beta1",
    kind: "ServiceExport",
    metadata: { name: "web", namespace },
  };
  const killedAt = async (method: string, path: string, change: () => Promise<unknown>): Promise<void> => {
    const collection = `/apis/multicluster.x-k8s.io/v1beta1/namespaces/${namespace}/serviceexports`;
    let killed = false;
    trap("member", {
      when: "before",
      catches: (write: Write) => write.method === method && write.path === collection + path,
      onCaught: async () => {
        await legation.controller.stop("SIGKILL");
        killed = true;
      },
    });
    await change();
    await eventually(() => killed, { ...PATIENT, what: "the write" });
    await legation.controller.start();
  };
  await killedAt("POST", "", () => host.create(serviceExports, exported));
  const there = await eventually(() => scene.find(west, serviceExports, "web"), PATIENT);
  const copy = await scene.inWest("web");
  expect(there.metadata.ownerReferences).toEqual([
    { apiVersion: "v1", kind: "Service", name: "web", uid: copy.metadata.uid },
  ]);

  // The next leader knows that there is something to remove.
  await killedAt("DELETE", "/web", () => host.delete(serviceExports, { namespace, name: "web" }));
  await scene.goes(west, serviceExports, "web");
  await scene.inWest("web", (service) => service.metadata.annotations?.["legation.dev/exported"] === undefined);

  await host.create(serviceExports, exported);
  await scene.run("web-1", { app: "web" }, "east");
  const why =
    "east: it serves no ServiceExport of multicluster.x-k8s.io as v1beta1 or v1alpha1, so the Service web is not";
  await scene.saysOn("ServiceExport", "web", why);
  await eventually(() => scene.find(west, serviceExports, "web"), PATIENT);

  // The status that the members' implementations write is shown on the host.
  await installServiceExports(memberCluster("east"));
  onTestFinished(() => removeServiceExports(memberCluster("east")));
  await legation.controller.stop();
  await legation.controller.start();
  await eventually(() => scene.find(east, serviceExports, "web"), PATIENT);
  const says = async (client: ClusterClient, type: string, status: string, reason: string): Promise<void> => {
    const said = { type, status, reason, message: "in a word", lastTransitionTime: "2026-02-03T04:05:06Z" };
    const patch = { type: "apply", force: true, body: { ...exported, status: { conditions: [said] } } } as const;
    const options = { subresource: "status", fieldManager: `mcs-${type}` };
    await client.patch(serviceExports, { namespace, name: "web" }, patch, options);
  };
  const toldOnHost = (expected: readonly string[]): Promise<void> =>
    eventuallyPasses(async () => {
      const { status } = await host.get(serviceExports, { namespace, name: "web" });
      const told = (status?.conditions ?? []).map((one) => `${one.type} ${one.status} ${one.reason} ${one.message}`);
      expect(told.sort()).toEqual(expected);
    }, PATIENT);
  await says(west, "Valid", "True", "Exported");
  await says(east, "Valid", "False", "NoIP");
  await toldOnHost(["Valid False NoIP east: in a word"]);
  await says(east, "Valid", "True", "Exported");
  await says(west, "Conflict", "True", "PortConflict");
  const agreed = "Valid True Exported east: in a word; west: in a word";
  await toldOnHost(["Conflict True PortConflict west: in a word", agreed]);
  // The status of an implementation on the host stays.
  await says(host, "Conflict", "False", "NoConflict");
  await says(east, "Valid", "Unknown", "Waiting");
  await toldOnHost(["Conflict False NoConflict in a word", "Valid Unknown Waiting east: in a word"]);

  await host.delete(services, { namespace, name: "web" });
  await scene.goes(west, services, "web");
  await scene.goes(west, serviceExports, "web");
});

test("reads and writes a ServiceExport in the versions that host and member serve, while these change", async () => {
  const scene = await makeScene(clients());
  const { legation } = gated();
  const { host, west } = clients();
  const { namespace } = scene;
  const [alpha, beta] = [serviceExportsIn("v1alpha1"), serviceExportsIn("v1beta1")];
  await installServiceExports(hostCluster(), ["v1alpha1"]);
  await installServiceExports(memberCluster("west"), ["v1beta1"]);
  onTestFinished(async () => {
    await Promise.all([hostCluster(), memberCluster("west")].map(removeServiceExports));
  });
  await legation.controller.stop();
  await legation.controller.start();
  for (const name of ["one", "two"]) await scene.service(name, { selector: { app: "web" } });
  await scene.run("web-0", { app: "web" });
  const exported = (resource: typeof alpha, name: string): ServiceExport => ({
    apiVersion: `${resource.group}/${resource.version}`,
    kind: resource.kind,
    metadata: { name, namespace },
  });
  const saysInWest = async (resource: typeof alpha, name: string, status: string): Promise<void> => {
    const said = { type: "Valid", status, reason: "Told", message: "so", lastTransitionTime: "2026-02-03T04:05:06Z" };
    const body = { ...exported(resource, name), status: { conditions: [said] } };
    const options = { subresource: "status", fieldManager: "mcs" };
    await west.patch(resource, { namespace, name }, { type: "apply", force: true, body }, options);
  };
  const toldOnHost = (resource: typeof alpha, name: string, expected: readonly string[]): Promise<void> =>
    eventuallyPasses(async () => {
      const { status } = await host.get(resource, { namespace, name });
      expect((status?.conditions ?? []).map(({ type, status, message }) => `${type} ${status} ${message}`)).toEqual(
        expected,
      );
    }, PATIENT);

  await host.create(alpha, exported(alpha, "one"));
  await eventually(() => scene.find(west, beta, "one"), PATIENT);
  await saysInWest(beta, "one", "True");
  await toldOnHost(alpha, "one", ["Valid True west: so"]);

  // The host is upgraded in two steps, and the member goes back to an older release.
  await installServiceExports(hostCluster(), ["v1alpha1", "v1beta1"]);
  await installServiceExports(hostCluster(), ["v1beta1"]);
  await installServiceExports(memberCluster("west"), ["v1alpha1"]);
  await host.create(beta, exported(beta, "two"));
  await eventually(() => scene.find(west, alpha, "two"), PATIENT);
  await saysInWest(alpha, "one", "False");
  await saysInWest(alpha, "two", "Unknown");
  await toldOnHost(beta, "one", ["Valid False west: so"]);
  await toldOnHost(beta, "two", ["Valid Unknown west: so"]);
  for (const name of ["one", "two"]) {
    await host.delete(beta, { namespace, name });
    await scene.goes(west, alpha, name);
  }
});
