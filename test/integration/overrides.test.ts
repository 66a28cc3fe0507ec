import { beforeEach, describe, expect, test } from "vitest";
import { CLUSTERS_ANNOTATION, OVERRIDES_ANNOTATION } from "../../src/api/keys.ts";
import { events, namespaces, pods } from "../../src/kube/resources.ts";
import { whyNotPlaced } from "../../src/pods/proxy-conditions.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podOf, podThat } from "../support/harness/pods-of.ts";
import { eventuallyPasses } from "../support/harness/wait.ts";

useLegation();
const clients = useClients();
let namespace: string;

beforeEach(async () => {
  const labels = { "legation.dev/delegation": "annotated" };
  namespace = await freshNamespace(hostCluster(), { prefix: "overrides", labels });
});

const OVERRIDES = JSON.stringify([
  {
    clusterSelector: "region in (eu)",
    patch: [
      { op: "test", path: "/spec/containers/0/name", value: "main" },
      { op: "replace", path: "/spec/containers/0/image", value: "mirror.example/main:1" },
      { op: "add", path: "/spec/containers/0/env", value: [{ name: "WHERE", value: "west" }] },
    ],
  },
  { clusters: ["east"], patch: [{ op: "remove", path: "/spec/hostname" }] },
]);

async function create(name: string, annotations: Record<string, string>): Promise<void> {
  await clients().host.create(pods, delegatedPod(namespace, name, { annotations }));
}

describe("overrides", () => {
  test("change the delegate in the members that they name, and leave the proxy as written", async () => {
    const { host, west } = clients();
    await create("changed", { [OVERRIDES_ANNOTATION]: OVERRIDES, [CLUSTERS_ANNOTATION]: "west" });
    const proxy = await podThat(host, namespace, "changed", inPhase("Running"));
    const delegate = await podOf(west, namespace, "changed");
    expect(delegate?.spec?.containers[0]).toMatchObject({
      image: "mirror.example/main:1",
      env: [{ name: "WHERE", value: "west" }],
    });
    expect(proxy.spec?.containers[0]?.image).not.toBe("mirror.example/main:1");
    // Forwarded changes do not undo them.
    const body = { metadata: { labels: { later: "yes" } } };
    await host.patch(pods, { namespace, name: "changed" }, { type: "merge", body });
    const after = await podThat(west, namespace, "changed", ({ metadata }) => metadata.labels?.later === "yes");
    expect(after.spec?.containers[0]?.image).toBe("mirror.example/main:1");
  });

  test("that add a field which the member's API server does not know run without it, and an event says so", async () => {
    const { host } = clients();
    const path = "/spec/containers/0/laterField";
    const patch = [
      { op: "add", path, value: "x" },
      { op: "add", path: "/spec/containers/0/env", value: [{ name: "A", value: "1", laterEnv: true }] },
    ];
    await create("newer", { [OVERRIDES_ANNOTATION]: JSON.stringify([{ patch }]), [CLUSTERS_ANNOTATION]: "west" });
    await podThat(host, namespace, "newer", inPhase("Running"));
    const dropped = async (): Promise<(string | undefined)[]> => {
      const { items } = await host.list(events, { namespace });
      return items.filter(({ reason }) => reason === "FieldsDropped").map(({ message }) => message);
    };
    await eventuallyPasses(async () =>
      expect(await dropped()).toEqual([
        expect.stringContaining(
          "west: its API server does not know spec.containers[0].laterField, spec.containers[0].env[0].laterEnv, so",
        ),
      ]),
    );
  });

  test("keep a pod that they do not fit from the member, and name the failing operation", async () => {
    const { host, east } = clients();
    await create("misfit", { [OVERRIDES_ANNOTATION]: OVERRIDES, [CLUSTERS_ANNOTATION]: "east" });
    const waiting = await podThat(host, namespace, "misfit", (pod) => whyNotPlaced(pod) !== undefined);
    expect(whyNotPlaced(waiting)?.message).toContain(
      "east: legation.dev/overrides: [1].patch[0]: remove /spec/hostname: the pod has nothing there",
    );
    expect(await podOf(east, namespace, "misfit")).toBeUndefined();
  });

  test("are refused at admission if they touch fields that Legation writes", async () => {
    const text = JSON.stringify([{ patch: [{ op: "add", path: "/metadata/labels/legation.dev~1host", value: "x" }] }]);
    await expect(create("refused", { [OVERRIDES_ANNOTATION]: text })).rejects.toThrow(/is not inside \/spec\//);
  });

  test("give a pod no privileges that the host has not judged, unless an operator writes them on the namespace", async () => {
    const { host, west } = clients();
    const root = JSON.stringify([
      { patch: [{ op: "add", path: "/spec/containers/0/securityContext", value: { runAsUser: 0 } }] },
    ]);
    await expect(create("root", { [OVERRIDES_ANNOTATION]: root })).rejects.toThrow(
      /changes spec\.containers\[0\]\.securityContext, which this cluster's admission judges/,
    );

    // Admission sees new pods only: later overrides are judged when the pod is placed.
    const gated = delegatedPod(namespace, "later", { annotations: { [CLUSTERS_ANNOTATION]: "west" } });
    gated.spec = { ...gated.spec, containers: gated.spec?.containers ?? [], schedulingGates: [{ name: "x.io/gate" }] };
    await host.create(pods, gated);
    const body = { metadata: { annotations: { [OVERRIDES_ANNOTATION]: root } }, spec: { schedulingGates: null } };
    await host.patch(pods, { namespace, name: "later" }, { type: "merge", body });
    const waiting = await podThat(host, namespace, "later", (pod) => whyNotPlaced(pod) !== undefined);
    expect(whyNotPlaced(waiting)?.message).toContain("west: legation.dev/overrides: [0].patch: changes");
    expect(await podOf(west, namespace, "later")).toBeUndefined();

    const defaults = { metadata: { annotations: { [OVERRIDES_ANNOTATION]: root } } };
    await host.patch(namespaces, { name: namespace }, { type: "merge", body: defaults });
    await create("operators", { [CLUSTERS_ANNOTATION]: "west" });
    await podThat(host, namespace, "operators", inPhase("Running"));
    const delegate = await podOf(west, namespace, "operators");
    expect(delegate?.spec?.containers[0]?.securityContext).toEqual({ runAsUser: 0 });
  });
});
