import { beforeAll, expect, test } from "vitest";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { endpointSlices, type Resource, services } from "../../../src/kube/resources.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { inPhase, podOf, podThat } from "../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../support/harness/wait.ts";

const statefulSets: Resource<KubeObject> = {
  group: "apps",
  version: "v1",
  plural: "statefulsets",
  kind: "StatefulSet",
  namespaced: true,
};
const waiting = { timeoutMs: 60_000 };
const SAYS = `trap 'exit 0' TERM
env | grep -E '^(WEB|PEERS)_' | sort; echo .
sleep 3600 & wait`;

async function make({ client, namespace }: Place): Promise<void> {
  const labels = { app: "web" };
  const ports = [{ name: "http", port: 80, targetPort: 8080 }];
  const inNamespace = (name: string): object => ({ name, namespace });
  await client.create(services, { metadata: inNamespace("web"), spec: { selector: labels, ports } });
  await client.create(services, {
    metadata: inNamespace("peers"),
    spec: { selector: labels, clusterIP: "None", publishNotReadyAddresses: true },
  });
  const container = { name: "main", image: "localhost/busybox:1", command: ["sh", "-c", SAYS] };
  const set = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "web", namespace },
    spec: {
      serviceName: "peers",
      replicas: 2,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers: [container] } },
    },
  };
  await client.create(statefulSets, set);
}

/** Returns names and addresses of a Service's endpoints, from its EndpointSlices. */
async function endpoints({ client, namespace }: Place, service: string): Promise<Record<string, string | undefined>> {
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const { items } = await client.list(endpointSlices, { namespace, labelSelector });
  const found = items.flatMap(({ endpoints }) => endpoints ?? []);
  return Object.fromEntries(
    found.map(({ hostname, targetRef, addresses }) => [hostname ?? targetRef?.name, addresses[0]]),
  );
}

onRealNodes((realNodes) => {
  let plain: Place;
  let delegating: Place;
  beforeAll(async () => {
    const places = await realNodes().places({ onFinished: afterFile });
    plain = places.plain;
    delegating = places.delegating;
    await Promise.all([make(plain), make(delegating)]);
  });

  test("lets a container find its Services in its environment as on a plain cluster", async () => {
    const said = async (place: Place): Promise<string[]> => {
      const { cluster, client, namespace } = place;
      await podThat(client, namespace, "web-1", inPhase("Running"), waiting);
      const lines = await eventually(async () => {
        const text = await kubectl(cluster, ["logs", "-n", namespace, "web-1"]);
        return text.endsWith(".\n") && text.split("\n");
      }, waiting);
      const { spec } = await client.get(services, { namespace, name: "web" });
      return lines.map((line) => line.replaceAll(spec?.clusterIP ?? "", "<address>"));
    };
    const there = await said(realNodes().inMember(delegating));
    expect(there).toContain("WEB_SERVICE_HOST=<address>");
    expect(there).toContain("WEB_SERVICE_PORT_HTTP=80");
    expect(there).toEqual(await said(plain));
  });

  test("has the same endpoints in the member and on the host: the addresses of the delegates", async () => {
    const there = realNodes().inMember(delegating);
    const addressOf = async (name: string): Promise<string | undefined> =>
      (await podOf(there.client, there.namespace, name))?.status?.podIP;
    await eventuallyPasses(async () => {
      const expected = { "web-0": await addressOf("web-0"), "web-1": await addressOf("web-1") };
      expect(new Set(Object.values(expected)).size).toBe(2);
      for (const place of [there, delegating]) {
        expect(await endpoints(place, "peers")).toEqual(expected);
        expect(await endpoints(place, "web")).toEqual(expected);
      }
    }, waiting);
  });
});
