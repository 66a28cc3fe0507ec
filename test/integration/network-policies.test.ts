import { describe, expect, onTestFinished, test } from "vitest";
import { HOST_LABEL } from "../../src/api/keys.ts";
import type { NetworkPolicy, Stored } from "../../src/api/kubernetes.ts";
import { networkPolicies, pods } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { legationWrites } from "../support/delegated/writes.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { inPhase, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { withoutMemberRight } from "../support/legation/member-rights.ts";
import { makeScene, PATIENT, type Scene } from "../support/services/scene.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";

const gated = useGatedLegation();
const clients = useClients();

async function policy(
  scene: Scene,
  name: string,
  spec: object = {},
  metadata: object = {},
): Promise<Stored<NetworkPolicy>> {
  return clients().host.create(networkPolicies, {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, namespace: scene.namespace, ...metadata },
    spec: { podSelector: {}, ...spec },
  });
}

/** Returns the host's copies in west by the names of their sources, once there are so many. */
async function copiesInWest({ namespace }: Scene, count: number): Promise<Map<string, Stored<NetworkPolicy>>> {
  return eventually(
    async () => {
      const { items } = await clients().west.list(networkPolicies, { namespace, labelSelector: HOST_LABEL });
      if (items.length !== count)
        throw new Error(`west has ${items.map(({ metadata }) => metadata.name).join() || "none"}`);
      return new Map(items.map((item) => [ownerOf(item)?.name ?? "", item]));
    },
    { ...PATIENT, what: `${count} copies in west` },
  );
}

describe.concurrent("a NetworkPolicy of the host", () => {
  test("is copied before its pods run, and selects them alone", async ({ onTestFinished }) => {
    const scene = await makeScene(clients(), onTestFinished);
    const { namespace } = scene;
    const { west, east } = clients();
    const own = await west.create(networkPolicies, {
      metadata: { name: "only-web", namespace },
      spec: { podSelector: { matchLabels: { mine: "yes" } } },
    });
    await policy(scene, "nothing-in");
    await policy(scene, "only-web", {
      podSelector: { matchLabels: { app: "web" } },
      ingress: [{ from: [{ podSelector: { matchLabels: { app: "client" } } }], ports: [{ port: 80 }] }],
    });
    await policy(scene, "of-the-host", {}, { annotations: { "legation.dev/copy": "false" } });
    await scene.run("web-0", { app: "web" });
    await scene.run("web-1", { app: "web" });

    const copies = await copiesInWest(scene, 2);
    const delegate = await west.get(pods, { namespace, name: "web-0" });
    const hostId = delegate.metadata.labels?.[HOST_LABEL];
    const ours = { [HOST_LABEL]: hostId };
    expect(copies.get("nothing-in")?.spec).toEqual({ podSelector: { matchLabels: ours }, policyTypes: ["Ingress"] });
    expect(copies.get("only-web")?.spec).toEqual({
      podSelector: { matchLabels: { app: "web", ...ours } },
      ingress: [
        {
          from: [{ podSelector: { matchLabels: { app: "client", ...ours } } }],
          ports: [{ port: 80, protocol: "TCP" }],
        },
      ],
      policyTypes: ["Ingress"],
    });
    const { others, pods: writes } = await legationWrites(memberCluster("west"), namespace);
    expect(others).toEqual(["create networkpolicies", "create networkpolicies"]);
    expect([...writes.values()]).toEqual([["create pods"], ["create pods"]]);
    expect((await legationWrites(hostCluster(), namespace)).others).toEqual([]);
    expect(await scene.find(west, networkPolicies, "only-web")).toEqual(own);
    expect((await east.list(networkPolicies, { namespace })).items).toEqual([]);

    await Promise.all([scene.end("web-0"), scene.end("web-1")]);
    await copiesInWest(scene, 0);
    expect(await scene.find(west, networkPolicies, "only-web")).toEqual(own);
  });

  test("is followed when it is created, changed or deleted while its pods run", async ({ onTestFinished }) => {
    const scene = await makeScene(clients(), onTestFinished);
    const { host, west } = clients();
    const ref = { namespace: scene.namespace, name: "rules" };
    await scene.run("web-0");
    await policy(scene, "rules");
    const [first] = (await copiesInWest(scene, 1)).values();
    const spec = { egress: [], policyTypes: ["Egress"] };
    await host.patch(networkPolicies, ref, { type: "merge", body: { spec } });
    const followed = async (): Promise<void> => {
      const copy = (await copiesInWest(scene, 1)).get("rules");
      expect(copy?.spec).toMatchObject({ policyTypes: ["Egress"] });
      expect(copy?.metadata.uid).toBe(first?.metadata.uid);
    };
    await eventuallyPasses(followed, PATIENT);
    // A change in the member does not stay.
    const copyRef = { namespace: scene.namespace, name: first?.metadata.name ?? "" };
    const opened = { metadata: { annotations: { "legation.dev/owner": null } }, spec: { egress: [{}] } };
    const { metadata } = await west.patch(networkPolicies, copyRef, { type: "merge", body: opened });
    await eventuallyPasses(async () => {
      expect((await west.get(networkPolicies, copyRef)).metadata.resourceVersion).not.toBe(metadata.resourceVersion);
      await followed();
    }, PATIENT);
    await host.delete(networkPolicies, ref);
    await copiesInWest(scene, 0);
  });

  test("keeps the pod out of a member that refuses it, with the reason", async ({ onTestFinished }) => {
    const scene = await makeScene(clients(), onTestFinished);
    const { namespace } = scene;
    const counted = "count/networkpolicies.networking.k8s.io";
    const quota = {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "none", namespace },
      spec: { hard: { [counted]: "0" } },
    };
    await kubectl(memberCluster("west"), ["create", "-f", "-"], { input: JSON.stringify(quota) });
    await eventuallyPasses(async () => {
      const args = ["get", "quota", "none", "-n", namespace, "-o", "json"];
      expect(JSON.parse(await kubectl(memberCluster("west"), args)).status.hard).toEqual({ [counted]: "0" });
    }, PATIENT);
    await policy(scene, "rules");
    // The copy there shows that the controller has seen it.
    await scene.run("web-1", {}, "east");
    await eventually(
      async () => (await clients().east.list(networkPolicies, { namespace })).items.length === 1,
      PATIENT,
    );
    await scene.create("web-0", {}, "west");
    await scene.saysOn("Pod", "web-0", "west: its API server refused NetworkPolicy rules, which may concern the pod: ");
    expect(await scene.find(clients().west, pods, "web-0")).toBeUndefined();
    await clients().host.delete(networkPolicies, { namespace, name: "rules" });
    await podThat(clients().host, namespace, "web-0", inPhase("Running"), PATIENT);
  });
});

test("finishes after a restart when the controller is killed at its writes", async () => {
  const scene = await makeScene(clients());
  const { legation, trap, release } = gated();
  onTestFinished(release);
  const { host } = clients();
  const ref = { namespace: scene.namespace, name: "rules" };
  const collection = `/apis/networking.k8s.io/v1/namespaces/${scene.namespace}/networkpolicies`;
  const killedAt = async (when: "before" | "after", method: string, change: () => Promise<unknown>): Promise<void> => {
    let killed = false;
    trap("member", {
      when,
      catches: (write) => write.method === method && write.path.startsWith(collection),
      onCaught: async () => {
        await legation.controller.stop("SIGKILL");
        killed = true;
      },
    });
    await change();
    await eventually(() => killed, { ...PATIENT, what: `the ${method}` });
    await legation.controller.start();
  };
  await policy(scene, "rules");
  await killedAt("after", "POST", () => scene.create("web-0"));
  await podThat(host, scene.namespace, "web-0", inPhase("Running"), PATIENT);
  await copiesInWest(scene, 1);
  const spec = { egress: [], policyTypes: ["Egress"] };
  await killedAt("before", "PATCH", () => host.patch(networkPolicies, ref, { type: "merge", body: { spec } }));
  await eventuallyPasses(async () => {
    expect((await copiesInWest(scene, 1)).get("rules")?.spec).toMatchObject({ policyTypes: ["Egress"] });
  }, PATIENT);
  await killedAt("before", "DELETE", () => host.delete(networkPolicies, ref));
  await copiesInWest(scene, 0);
});

test("sends no pod of a namespace with policies to a member that joined without the rights to copy them", async () => {
  const scene = await makeScene(clients());
  const { legation } = gated();
  const { host, west } = clients();
  const restore = await withoutMemberRight(west, "networkpolicies");
  onTestFinished(restore);
  await legation.controller.stop();
  await legation.controller.start();
  await scene.run("free");
  await policy(scene, "rules");
  await scene.create("web-0");
  await scene.saysOn("Pod", "web-0", "west: its NetworkPolicies cannot be read yet; if this lasts, let it join again");
  expect(await scene.find(west, pods, "web-0")).toBeUndefined();
  await restore();
  await podThat(host, scene.namespace, "web-0", inPhase("Running"), PATIENT);
  await copiesInWest(scene, 1);
});
