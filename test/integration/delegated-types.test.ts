import { describe, expect, onTestFinished, test } from "vitest";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { AGGREGATE_TO_HOST_LABEL, HOST_LABEL, WHOLE_FINALIZER, WHOLE_KEY } from "../../src/api/keys.ts";
import { delegatedTypes } from "../../src/api/resources.ts";
import { membersOfObject } from "../../src/copies/object-members.ts";
import type { Resource } from "../../src/kube/resources.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { legation } from "../support/legation/cli.ts";
import { newNamespace } from "../support/legation/whole-namespace.ts";
import {
  createWidget,
  findWidget,
  reportWidget,
  useWholeWidgets,
  widgetCopy,
} from "../support/legation/whole-widgets.ts";
import { installWidgets, widgets } from "../support/legation/widgets.ts";

const running = useLegation();
const clients = useClients();
const WEST = { "legation.dev/clusters": "west" };

useWholeWidgets();

describe("a DelegatedType", () => {
  test("leaves nothing of its objects in a member that is unjoined, and gives them again when it joins", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await createWidget(host, namespace, { size: 1 });
    await widgetCopy(west, namespace);
    await legation(["unjoin", "west", `--kubeconfig=${hostCluster().kubeconfig}`, "--drain"]);
    expect(await findWidget(west, namespace)).toBeUndefined();
    // The roles for types go with the access that owns them.
    await eventuallyPasses(async () => {
      const roles = await kubectl(memberCluster("west"), ["get", "clusterroles", "-l", HOST_LABEL, "-o", "name"]);
      expect(roles).toBe("");
    });
    // As later files expect it: by its fault proxy.
    await running().join("west", memberCluster("west"), "region=eu");
    await installWidgets({ cluster: hostCluster() }, { west: memberCluster("west") });
    await widgetCopy(west, namespace);
  });

  test("counts its objects, and is refused for types that a controller of the host owns", async () => {
    const { host } = clients();
    await eventuallyPasses(async () => {
      const type = await host.get(delegatedTypes, { name: "widgets.shop.example.com" });
      expect(type.status?.conditions).toMatchObject([
        { type: "Ready", status: "True" },
        { type: "ExpressionsValid", status: "True" },
      ]);
      expect(type.status).toMatchObject({ waiting: 0 });
    });
    const spec = { group: "apps", version: "v1", kind: "Deployment", plural: "deployments" };
    const object = {
      apiVersion: "legation.dev/v1alpha1",
      kind: "DelegatedType",
      metadata: { name: "deployments.apps" },
      spec,
    };
    await expect(host.create(delegatedTypes, object)).rejects.toThrow("delegate its pods instead");
    const misnamed = {
      ...object,
      metadata: { name: "widgets" },
      spec: { ...spec, group: "example.com", plural: "widgets" },
    };
    await expect(host.create(delegatedTypes, misnamed)).rejects.toThrow("metadata.name must be the plural");
    const both = { spec: { retain: ["/spec/parts"] } };
    const ref = { name: "widgets.shop.example.com" };
    await expect(host.patch(delegatedTypes, ref, { type: "merge", body: both })).rejects.toThrow(
      "would lack the number",
    );
  });

  test("says which expression does not compile, and for which object one fails", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    const name = "widgets.shop.example.com";
    const before = (await host.get(delegatedTypes, { name })).spec;
    const write = (spec: object): Promise<unknown> =>
      host.patch(delegatedTypes, { name }, { type: "merge", body: { spec } });
    const expectState = (state: object): Promise<void> =>
      eventuallyPasses(async () => {
        const { status } = await host.get(delegatedTypes, { name });
        expect(status?.conditions?.[1]).toMatchObject(state);
      });
    const rule = (path: string): object => ({
      health: null,
      status: [{ path, value: "values.all(v, v != 'odd' || v + 1 == 2) ? 'Up' : 'Down'" }],
    });
    await expect(write(rule("/spec/size"))).rejects.toThrow("should match");
    await expect(write(rule("/status/observedGeneration"))).rejects.toThrow("observedGeneration is the host's");
    await write({ health: "object.status.phase = 'Up'" });
    const message = expect.stringContaining("spec.health: line 1, column 21: ");
    await expectState({ status: "False", reason: "NotCompiled", message });
    await write(rule("/status/phase"));
    await createWidget(host, namespace, {}, WEST);
    await reportWidget(west, namespace, "True", { phase: "odd", url: "http://one" });
    const failing = `${namespace}/one: spec.status[0] (/status/phase): line 1, column 29: no such overload: dyn<string> + int`;
    await expectState({ status: "False", reason: "EvaluationFailed", message: expect.stringContaining(failing) });
    const { status } = await host.get(widgets, { namespace, name: "one" });
    expect(status).toMatchObject({ url: "http://one" });
    expect(status).not.toHaveProperty("phase");
    await write({ health: before.health, status: before.status });
    await eventuallyPasses(async () => {
      expect((await findWidget(host, namespace))?.status).toMatchObject({ phase: "Down" });
    });
  });

  test("is wanted before an object of the type is taken", async () => {
    const namespace = await newNamespace();
    const lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "one", namespace, annotations: { [WHOLE_KEY]: "true" } },
    };
    const applied = kubectl(hostCluster(), ["create", "-f", "-"], { input: JSON.stringify(lease) });
    await expect(applied).rejects.toThrow("no DelegatedType names it");
  });

  test("releases its objects when it is deleted, and created anew takes them up again with their copies", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await createWidget(host, namespace, { size: 1 }, WEST);
    const { uid } = (await widgetCopy(west, namespace)).metadata;
    await kubectl(hostCluster(), ["delete", "delegatedtype/widgets.shop.example.com", "--timeout=30s"]);
    expect((await findWidget(host, namespace))?.metadata.finalizers).toBeUndefined();
    // Others may change it, and its copy stays as it was.
    const body = { spec: { size: 2 } };
    await host.patch(widgets, { namespace, name: "one" }, { type: "merge", body });
    expect((await findWidget(west, namespace))?.spec).toEqual({ size: 1 });
    await installWidgets({ cluster: hostCluster() }, {});
    await eventuallyPasses(async () => {
      const copy = await findWidget(west, namespace);
      expect(copy?.spec).toEqual({ size: 2 });
      expect(copy?.metadata.uid).toBe(uid);
    });
    expect((await findWidget(host, namespace))?.metadata.finalizers).toEqual([WHOLE_FINALIZER]);
  });

  test("leaves copies to the members when the host loses the definition", async () => {
    const namespace = await newNamespace();
    const { host, west } = clients();
    await createWidget(host, namespace, { size: 1 }, WEST);
    await widgetCopy(west, namespace);
    await kubectl(hostCluster(), ["delete", "customresourcedefinition/widgets.shop.example.com", "--timeout=60s"]);
    const left = await findWidget(west, namespace);
    expect(left?.spec).toEqual({ size: 1 });
    expect(left?.metadata.labels?.[HOST_LABEL]).toBeUndefined();
  });
});

describe("an object of a type without a status subresource", () => {
  const NAME = "gadgets.shop.example.com";
  const gadgets: Resource<AnyObject> = { ...widgets, plural: "gadgets", kind: "Gadget" };

  async function installGadgets(): Promise<void> {
    const names = { kind: "Gadget", listKind: "GadgetList", plural: "gadgets", singular: "gadget" };
    const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
    const definition = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: NAME },
      spec: {
        group: "shop.example.com",
        scope: "Namespaced",
        names,
        versions: [{ name: "v1", served: true, storage: true, schema }],
      },
    };
    const role = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "hosts-gadgets", labels: { [AGGREGATE_TO_HOST_LABEL]: "true" } },
      rules: [
        {
          apiGroups: ["shop.example.com"],
          resources: ["gadgets"],
          verbs: ["list", "watch", "create", "patch", "delete"],
        },
      ],
    };
    const apply = (cluster: Cluster, object: object): Promise<string> =>
      kubectl(cluster, ["apply", "-f", "-"], { input: JSON.stringify(object) });
    for (const cluster of [hostCluster(), memberCluster("west")]) {
      await apply(cluster, definition);
      await kubectl(cluster, ["wait", "--for=condition=Established", `customresourcedefinition/${NAME}`]);
    }
    await apply(memberCluster("west"), role);
    await legation(["install", `--kubeconfig=${hostCluster().kubeconfig}`, `--types=${NAME}`]);
  }

  async function removeGadgets(): Promise<void> {
    const roles = [`clusterrole/legation-controller-${NAME}`, `clusterrole/legation-authors-${NAME}`];
    await kubectl(hostCluster(), ["delete", "--ignore-not-found", `delegatedtype/${NAME}`]);
    await kubectl(hostCluster(), ["delete", "--ignore-not-found", ...roles]);
    for (const cluster of [hostCluster(), memberCluster("west")]) {
      await kubectl(cluster, ["delete", "--ignore-not-found", `customresourcedefinition/${NAME}`]);
    }
    await kubectl(memberCluster("west"), ["delete", "--ignore-not-found", "clusterrole/hosts-gadgets"]);
  }

  test("has the status of its member, and no write follows from a write of it", async () => {
    onTestFinished(removeGadgets);
    await installGadgets();
    const namespace = await newNamespace();
    const { host, west } = clients();
    const live = async (name: string, phase: string): Promise<void> => {
      const ref = { namespace, name };
      const metadata = { ...ref, annotations: { [WHOLE_KEY]: "true", ...WEST } };
      const object = { apiVersion: "shop.example.com/v1", kind: "Gadget", metadata, spec: {} };
      // The webhook and the controller's rights follow the new type.
      await eventually(() => host.create(gadgets, object).catch(() => undefined), { what: "the object" });
      await eventually(() => west.find(gadgets, ref), { what: "the copy" });
      const conditions = [{ type: "Ready", status: "True", observedGeneration: 1 }];
      const body = { status: { phase, observedGeneration: 1, conditions } };
      await west.patch(gadgets, ref, { type: "merge", body });
      await eventuallyPasses(async () => expect((await host.find(gadgets, ref))?.status).toMatchObject({ phase }));
    };
    await live("one", "Up");
    const recorded = async (): Promise<AnyObject> => {
      const object = await host.get(gadgets, { namespace, name: "one" });
      const { generation = 0 } = object.metadata;
      expect(membersOfObject(object)).toMatchObject([{ state: "InStep", generation, health: "True" }]);
      return object;
    };
    await eventuallyPasses(async () => void (await recorded()));
    const { metadata, status } = await recorded();
    // The whole lives of two other objects: a surplus write may come late.
    await live("two", "Down");
    await live("three", "Up");
    expect((await recorded()).metadata).toEqual(metadata);
    // Generations would change with the write of the status that has them.
    expect(status).toEqual({ phase: "Up", conditions: [{ type: "Ready", status: "True" }] });
  });
});
