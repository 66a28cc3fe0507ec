import { describe, expect, test } from "vitest";
import { HOST_LABEL } from "../../src/api/keys.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import { membersOfObject } from "../../src/copies/object-members.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { events } from "../../src/kube/resources.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { runCli } from "../support/legation/cli.ts";
import { newNamespace } from "../support/legation/whole-namespace.ts";
import {
  createWidget,
  findWidget,
  reportWidget,
  useWholeWidgets,
  widgetCopy,
} from "../support/legation/whole-widgets.ts";
import { widgets } from "../support/legation/widgets.ts";

useLegation();
const clients = useClients();
const WEST = { "legation.dev/clusters": "west" };

useWholeWidgets();

async function reasonsOf(namespace: string): Promise<string[]> {
  const { items } = await clients().host.list(events, { namespace });
  return items.filter(({ involvedObject: { name } }) => name === "one").map(({ reason = "" }) => reason);
}
/** Lets a policy refuse the deletion of widgets. Returns what removes it. */
async function denyDeletion(cluster: Cluster, namespace: string, message: string): Promise<() => Promise<void>> {
  const apiVersion = "admissionregistration.k8s.io/v1";
  const metadata = { name: namespace };
  const rule = { apiGroups: ["shop.example.com"], apiVersions: ["v1"], resources: ["widgets"], operations: ["DELETE"] };
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  await applyAll(cluster, [
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicy",
      metadata,
      spec: {
        matchConstraints: { namespaceSelector, resourceRules: [rule] },
        validations: [{ expression: "false", message }],
      },
    },
    {
      apiVersion,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: namespace, validationActions: ["Deny"] },
    },
  ]);
  const dryRun = ["-n", namespace, "delete", "widget/one", "--dry-run=server"];
  // Not by `rejects`: a failed attempt would count for whichever of the concurrent tests is the current one.
  const isDenied = (): Promise<boolean> =>
    kubectl(cluster, dryRun).then(
      () => false,
      (error) => String(error).includes(message),
    );
  await eventually(isDenied, { what: "the policy in force" });
  return async () => {
    for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"]) {
      await kubectl(cluster, ["delete", kind, namespace]);
    }
  };
}

describe.concurrent("a custom resource with legation.dev/whole", () => {
  test("shows the status of its member, with the host's generations", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await createWidget(host, namespace, { size: 1 }, WEST);
    await reportWidget(west, namespace, "True", { url: "http://one" });
    await kubectl(hostCluster(), ["wait", "--for=condition=Ready", "widget/one", "-n", namespace, "--timeout=30s"]);
    expect((await findWidget(host, namespace))?.status).toMatchObject({ url: "http://one", observedGeneration: 1 });
    expect(await findWidget(east, namespace)).toBeUndefined();
    await host.patch(widgets, { namespace, name: "one" }, { type: "merge", body: { spec: { size: 2 } } });
    await eventuallyPasses(async () => expect((await findWidget(west, namespace))?.spec).toMatchObject({ size: 2 }));
    // The operator has not seen the change.
    await eventuallyPasses(async () => {
      const { status, metadata } = await host.get(widgets, { namespace, name: "one" });
      expect(metadata.generation).toBe(2);
      expect(status).toMatchObject({ observedGeneration: 1 });
    });
    await reportWidget(west, namespace, "True");
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({ observedGeneration: 2 });
    });
  });

  test("is Ready when it is in all members, and sums what its type says", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await createWidget(host, namespace, {});
    await reportWidget(west, namespace, "True", { readyReplicas: 2 });
    await reportWidget(east, namespace, "False", { readyReplicas: 1 });
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({
        readyReplicas: 3,
        conditions: [
          { type: "Ready", status: "False", message: "east: False, Checked, seen; west: True, Checked, seen" },
        ],
      });
    });
    await eventuallyPasses(async () =>
      expect(membersOfObject(await host.get(widgets, { namespace, name: "one" }))).toMatchObject([
        { member: "east", state: "InStep", generation: 1, health: "False" },
        { member: "west", state: "InStep", generation: 1, health: "True" },
      ]),
    );
    await reportWidget(east, namespace, "True", { readyReplicas: 4 });
    await kubectl(hostCluster(), ["wait", "--for=condition=Ready", "widget/one", "-n", namespace, "--timeout=30s"]);
    expect((await findWidget(host, namespace))?.status).toMatchObject({ readyReplicas: 6, observedGeneration: 1 });
  });

  test("has a field by the rule of its type, and its health by an expression", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await createWidget(host, namespace, {});
    await reportWidget(west, namespace, "True", { phase: "Up" });
    await reportWidget(east, namespace, "False", { phase: "Failed" });
    await eventuallyPasses(async () => {
      const object = await host.get(widgets, { namespace, name: "one" });
      expect(object.status).toMatchObject({ phase: "Down" });
      expect(membersOfObject(object)).toMatchObject([{ health: "False" }, { health: "True" }]);
    });
    await eventuallyPasses(async () => {
      const { status } = await host.get(delegatedTypes, { name: "widgets.shop.example.com" });
      expect(status?.unhealthy).toBeGreaterThan(0);
    });
    await reportWidget(east, namespace, "True", { phase: "Up" });
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({ phase: "Up" });
    });
  });

  test("is divided by preferences, and anew when their number or its own changes", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    const divided = (clusters: object): object => ({
      "legation.dev/scheduling-preferences": JSON.stringify({ clusters }),
    });
    const partsIn = async (client: ClusterClient): Promise<unknown> => (await findWidget(client, namespace))?.spec;
    await createWidget(host, namespace, { parts: 8, size: 1 }, divided({ west: { weight: 3 }, east: { weight: 1 } }));
    await eventuallyPasses(async () => {
      expect([await partsIn(west), await partsIn(east)]).toEqual([
        { parts: 6, size: 1 },
        { parts: 2, size: 1 },
      ]);
    });
    const ref = { namespace, name: "one" };
    await host.patch(widgets, ref, { type: "merge", body: { spec: { parts: 4 } } });
    await eventuallyPasses(async () => {
      expect([await partsIn(west), await partsIn(east)]).toMatchObject([{ parts: 3 }, { parts: 1 }]);
    });
    const annotations = divided({ west: { weight: 1 } });
    await host.patch(widgets, ref, { type: "merge", body: { metadata: { annotations } } });
    await eventuallyPasses(async () => {
      expect([await partsIn(west), await partsIn(east)]).toEqual([{ parts: 4, size: 1 }, undefined]);
    });
    const without = host.patch(widgets, ref, {
      type: "merge",
      body: { metadata: { annotations: divided({ west: {} }) }, spec: { parts: null } },
    });
    await expect(without).rejects.toThrow("the object has no number at /spec/parts");
  });

  test("has an applied field put back, and leaves retained fields and those of other managers to the member", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await createWidget(host, namespace, { replicas: 1, size: 1, color: "red" }, WEST);
    const ref = { namespace, name: "one" };
    expect((await widgetCopy(west, namespace)).spec).toEqual({ size: 1, color: "red" });
    const spec = { replicas: 7, size: 5, shape: "round" };
    const body = { apiVersion: "shop.example.com/v1", kind: "Widget", metadata: { name: "one" }, spec };
    await west.patch(widgets, ref, { type: "apply", body, force: true }, { fieldManager: "autoscaler" });
    const theirs = { replicas: 7, shape: "round" };
    await eventuallyPasses(async () =>
      expect((await findWidget(west, namespace))?.spec).toEqual({ ...theirs, size: 1, color: "red" }),
    );
    expect(await reasonsOf(namespace)).toEqual([]);
    // Never applied here, so it is given up, and stays so; other fields follow, and a removed one goes.
    await host.patch(widgets, ref, { type: "merge", body: { spec: { shape: "square" } } });
    await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["FieldConflict"]));
    await host.patch(widgets, ref, { type: "merge", body: { spec: { size: 2, color: null } } });
    await eventuallyPasses(async () =>
      expect((await findWidget(west, namespace))?.spec).toEqual({ ...theirs, size: 2 }),
    );
    expect(await reasonsOf(namespace)).toEqual(["FieldConflict"]);
  });

  test("keeps a field that another manager takes for the third time, and names that manager on the host", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await createWidget(host, namespace, { size: 1, color: "red" }, WEST);
    await widgetCopy(west, namespace);
    const ref = { namespace, name: "one" };
    const specThere = async (): Promise<unknown> => (await findWidget(west, namespace))?.spec;
    const take = (size: number): Promise<unknown> =>
      west.patch(widgets, ref, { type: "merge", body: { spec: { size } } }, { fieldManager: "tuner" });
    for (const size of [7, 8]) {
      await take(size);
      await eventuallyPasses(async () => expect(await specThere()).toEqual({ size: 1, color: "red" }));
    }
    await take(9);
    await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["FieldContested"]));
    const { items } = await host.list(events, { namespace });
    expect(items.find(({ reason }) => reason === "FieldContested")?.message).toBe(
      "west: fields that another manager there keeps changing are left alone for ten minutes: .spec.size (tuner); " +
        "name them in retain of the DelegatedType if they are that manager's",
    );
    const contested = { member: "west", state: "Contested", message: "tuner keeps changing .spec.size" };
    await eventuallyPasses(async () =>
      expect(membersOfObject(await host.get(widgets, ref))).toMatchObject([contested]),
    );
    const { stdout } = await runCli([
      "status",
      "widget/one",
      "-n",
      namespace,
      `--kubeconfig=${hostCluster().kubeconfig}`,
    ]);
    expect(stdout).toMatch(/^west +Contested .* tuner keeps changing .spec.size/m);
    expect(stdout).toMatch(/FieldContested: west: fields/);
    // The rest follows, and is put back.
    await host.patch(widgets, ref, { type: "merge", body: { spec: { size: 3, color: "blue" } } });
    await eventuallyPasses(async () => expect(await specThere()).toEqual({ size: 9, color: "blue" }));
    await west.patch(widgets, ref, { type: "merge", body: { spec: { color: "green" } } }, { fieldManager: "tuner" });
    await eventuallyPasses(async () => expect(await specThere()).toEqual({ size: 9, color: "blue" }));
    expect(await reasonsOf(namespace)).toEqual(["FieldContested"]);
  });

  test("leaves an object of the member's own alone, and takes it over when it is asked to", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const own = {
      apiVersion: "shop.example.com/v1",
      kind: "Widget",
      metadata: { name: "one", namespace },
      spec: { own: true },
    };
    await eventually(() => west.create(widgets, own).catch(() => undefined), { what: "the member's own object" });
    await createWidget(host, namespace, { size: 1 }, WEST);
    await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["NotInMember"]));
    await eventuallyPasses(async () =>
      expect(membersOfObject(await host.get(widgets, { namespace, name: "one" }))).toMatchObject([
        { member: "west", state: "Refused" },
      ]),
    );
    const asked = ["status", "widget", "one", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
    const { code, stdout } = await runCli(asked);
    expect(code).toBe(0);
    expect(stdout).toContain("whole, in step in 0 of 1 members, generation 1");
    expect(stdout).toMatch(/^west +Refused .* is there already/m);
    expect(stdout).toMatch(/^east +Excluded /m);
    expect((await findWidget(west, namespace))?.spec).toEqual({ own: true });
    const body = {
      metadata: { annotations: { "legation.dev/on-conflict": "adopt", "legation.dev/on-delete": "orphan" } },
    };
    await host.patch(widgets, { namespace, name: "one" }, { type: "merge", body });
    await eventuallyPasses(async () =>
      expect((await findWidget(west, namespace))?.spec).toEqual({ own: true, size: 1 }),
    );
    await kubectl(hostCluster(), ["delete", "widget/one", "-n", namespace, "--timeout=30s"]);
    const left = await findWidget(west, namespace);
    expect(left?.spec).toEqual({ own: true, size: 1 });
    expect(left?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });

  test("stays in the member when it is deleted just after its author asked for that", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const ref = { namespace, name: "one" };
    await createWidget(host, namespace, { size: 1 }, WEST);
    const { metadata } = await widgetCopy(west, namespace);
    const annotate = (value: string | null) =>
      ({ type: "merge", body: { metadata: { annotations: { "legation.dev/on-delete": value } } } }) as const;
    await host.patch(widgets, ref, annotate("orphan"));
    await kubectl(hostCluster(), ["delete", "widget/one", "-n", namespace, "--timeout=30s"]);
    const left = await findWidget(west, namespace);
    expect(left?.metadata.uid).toBe(metadata.uid);
    expect(left?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });

  test("says that a member refuses to delete its copy, and goes when the member lets it", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const ref = { namespace, name: "one" };
    await createWidget(host, namespace, { size: 1 }, WEST);
    await widgetCopy(west, namespace);
    const allow = await denyDeletion(memberCluster("west"), namespace, "kept for the auditors");
    try {
      await host.delete(widgets, ref);
      await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["DeletionRefused"]));
      await eventuallyPasses(async () => {
        const record = membersOfObject(await host.get(widgets, ref));
        expect(record).toMatchObject([{ member: "west", state: "Leaving" }]);
        expect(record?.[0]?.message).toMatch(
          /^its API server refused the deletion of Widget one: .*kept for the auditors/,
        );
      });
      const asked = ["status", "widget", "one", "-n", namespace, `--kubeconfig=${hostCluster().kubeconfig}`];
      expect((await runCli(asked)).stdout).toMatch(/^west +Leaving .*kept for the auditors/m);
      expect(await findWidget(west, namespace)).toBeDefined();
    } finally {
      await allow();
    }
    await eventuallyPasses(async () => expect(await findWidget(host, namespace)).toBeUndefined());
    expect(await findWidget(west, namespace)).toBeUndefined();
  });

  test("comes back when it is deleted or changed in the member", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await createWidget(host, namespace, { size: 1 }, WEST);
    const { metadata } = await widgetCopy(west, namespace);
    await west.patch(widgets, { namespace, name: "one" }, { type: "merge", body: { spec: null } });
    await eventuallyPasses(async () => expect((await findWidget(west, namespace))?.spec).toEqual({ size: 1 }));
    await west.delete(widgets, { namespace, name: "one" });
    await eventuallyPasses(async () => {
      const again = await findWidget(west, namespace);
      expect(again?.spec).toEqual({ size: 1 });
      expect(again?.metadata.uid).not.toBe(metadata.uid);
    });
    await eventuallyPasses(async () => expect(await reasonsOf(namespace)).toEqual(["CopyDeleted"]));
    // The event stays for an hour, and says it already.
    const { uid } = (await widgetCopy(west, namespace)).metadata;
    await west.delete(widgets, { namespace, name: "one" });
    await eventuallyPasses(async () => expect((await findWidget(west, namespace))?.metadata.uid).not.toBe(uid));
    expect(await reasonsOf(namespace)).toEqual(["CopyDeleted"]);
  });

  test("has no event when its copy loses its marks, is moved or goes with its namespace", async () => {
    const namespace = await newNamespace();
    const { host, west, east } = clients();
    await createWidget(host, namespace, { size: 1 }, WEST);
    const { metadata } = await widgetCopy(west, namespace);
    const ref = { namespace, name: "one" };
    const labels = Object.fromEntries(Object.keys(metadata.labels ?? {}).map((key) => [key, null]));
    await west.patch(widgets, ref, { type: "merge", body: { metadata: { labels } } });
    await eventuallyPasses(async () =>
      expect((await findWidget(west, namespace))?.metadata.labels).toHaveProperty([HOST_LABEL]),
    );
    const place = (member: string) =>
      host.patch(widgets, ref, {
        type: "merge",
        body: { metadata: { annotations: { "legation.dev/clusters": member } } },
      });
    await place("east");
    await eventuallyPasses(async () => expect(await findWidget(west, namespace)).toBeUndefined());
    await widgetCopy(east, namespace);
    await place("west");
    const { uid } = (await widgetCopy(west, namespace)).metadata;
    expect(uid).not.toBe(metadata.uid);
    await kubectl(memberCluster("west"), ["delete", "namespace", namespace]);
    await eventuallyPasses(
      async () => {
        const again = await findWidget(west, namespace);
        expect([undefined, uid]).not.toContain(again?.metadata.uid);
      },
      { timeoutMs: 90_000 },
    );
    // A namespace that is going away refuses the copy for some seconds.
    expect((await reasonsOf(namespace)).filter((reason) => reason !== "NotInMember")).toEqual([]);
  });
});
