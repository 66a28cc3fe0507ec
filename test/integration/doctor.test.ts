import { networkInterfaces } from "node:os";
import { beforeAll, describe, expect, test } from "vitest";
import { secrets } from "../../src/kube/resources.ts";
import { freePort } from "../support/clusters/ports.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";
import { allWell, doctor, patient, rejoin, remedyOf, UNHURRIED } from "../support/legation/doctor.ts";

/** An address of this machine to which an API server proxies. Loopback where there is no other. */
const ADDRESS =
  Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
const running = useLegation({ controllerFlags: [`--kubelet-listen=${ADDRESS}:${await freePort()}`] });
const clients = useClients();
const labels = { "legation.dev/delegation": "annotated" };
beforeAll(async () => {
  await running().access();
});

describe("legation doctor", () => {
  test("finds nothing wrong with an installation that works, and tells what it checked", async () => {
    await freshNamespace(hostCluster(), { prefix: "doctor", labels });
    await allWell();
    const { healthy, states } = await doctor(UNHURRIED);
    expect(healthy).toBe(true);
    const [kubelet] = states("the API server reaches the kubelet API of legation-west");
    expect(kubelet).toBe(ADDRESS === "127.0.0.1" ? "SKIP" : "OK");
    for (const part of [
      "Kubernetes v1.",
      "its clock agrees with",
      "CustomResourceDefinitions: ",
      "admission policies and their bindings: ",
      "rights of webhook and controller: ",
      "MutatingWebhookConfiguration zz-legation: caBundle",
      "webhook's certificate",
      "the API server reaches the webhook",
      "admission of a pod in namespace",
      "a controller leads",
      "west is ready",
      "west: its token",
      "west is the cluster that joined",
      "west: the host's account has every right that it needs",
      "west: its clock agrees with the host's",
      "APIService v1.access.legation.dev is available",
      "certificate of `legation access`",
    ]) {
      expect(new Set(states(part)), part).toEqual(new Set(["OK"]));
    }
  });

  test("checks the members of --members alone, and nothing is stored", async () => {
    const namespacesBefore = await kubectl(hostCluster(), ["get", "namespaces", "-o", "name"]);
    const { states } = await doctor("--members=east");
    expect(states("east is ready")).toEqual(["OK"]);
    expect(states("west is ready")).toEqual([]);
    expect(await kubectl(hostCluster(), ["get", "namespaces", "-o", "name"])).toBe(namespacesBefore);
  });

  test("finds a webhook that is down and a caBundle of another authority", async () => {
    await freshNamespace(hostCluster(), { prefix: "doctor", labels });
    await running().webhook.stop();
    const caBundle = Buffer.from(hostCluster().caData).toString("base64");
    const patch = [{ op: "replace", path: "/webhooks/0/clientConfig/caBundle", value: caBundle }];
    const configuration = "mutatingwebhookconfiguration/legation";
    await kubectl(hostCluster(), ["patch", configuration, "--type=json", `--patch=${JSON.stringify(patch)}`]);
    const found = await doctor("--members=east");
    expect(found.code).toBe(1);
    expect(remedyOf(found, "the API server does not reach the webhook")).toContain("start `legation webhook` again");
    expect(remedyOf(found, "does not have the webhook's own authority")).toContain("start `legation webhook` again");
    expect(remedyOf(found, "admission of a pod in namespace")).toContain("start `legation webhook` again");
    await running().webhook.start();
    await allWell();
  });

  test("finds a member that hangs, and checks the other meanwhile", async () => {
    const west = memberCluster("west");
    await west.apiServer.freeze();
    try {
      const found = await doctor();
      expect(remedyOf(found, `west does not answer at ${west.proxiedServer}: no answer within 5 s`)).toContain(
        "mend the way there",
      );
      expect(found.states("east is the cluster that joined")).toEqual(["OK"]);
    } finally {
      await west.apiServer.thaw();
    }
  });

  test("finds rights that a member took away, which `legation join` gives again", async () => {
    const west = memberCluster("west");
    const roles = (await kubectl(west, ["get", "clusterroles", "-o", "name"])).split("\n");
    const role = roles.find((name) => /\/legation-host-[0-9a-f]{8}$/.test(name)) ?? "";
    const path = await kubectl(west, ["get", role, "-o", "jsonpath={.rules[*].resources}"]);
    expect(path).toContain("persistentvolumeclaims");
    const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] }];
    await kubectl(west, ["patch", role, `--patch=${JSON.stringify({ rules })}`]);
    await eventuallyPasses(async () => {
      const found = await doctor("--members=west");
      const words = "west: the host's account lacks rights: pods: create, patch, delete;";
      expect(remedyOf(found, words)).toBe("legation join west --member-kubeconfig FILE");
    }, patient);
    await rejoin();
    await allWell();
  });

  test("finds credentials that are gone, which `legation join` stores again", async () => {
    await clients().host.delete(secrets, { namespace: "legation-system", name: "member-west" });
    const found = await doctor("--members=west");
    expect(remedyOf(found, "Secret legation-system/member-west with its credentials is missing")).toBe(
      "legation join west --member-kubeconfig FILE",
    );
    await rejoin();
    await allWell();
  });
});
