import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Stored } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { events, namespaces } from "../../src/kube/resources.ts";
import { createdInMembers, killAt } from "../support/crash/kill.ts";
import { afterFile } from "../support/harness/after-file.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { allowWidgetsIn, installWidgets, removeWidgets, widgets } from "../support/legation/widgets.ts";
import { useGatedLegation } from "../support/write-gate/gated-legation.ts";

const gated = useGatedLegation();
const clients = useClients();
// A new leader waits for the Lease of the one before.
const PATIENT = { timeoutMs: 90_000 };
const WIDGET = "/widgets/one";

/** Each write in the life of an object that one member gets, with a change and a status, until it is deleted. */
const WRITES = [
  { write: "its member is recorded", where: "host", method: "PATCH", path: WIDGET, body: /"legation.dev\/cluster"/ },
  { write: "its copy is created", where: "member", method: "POST", path: "/widgets", body: /./ },
  {
    write: "the copy's fields become applied ones",
    where: "member",
    method: "PATCH",
    path: WIDGET,
    body: /managedFields/,
  },
  { write: "the change is applied", where: "member", method: "PATCH", path: WIDGET, body: /"size":2/ },
  { write: "its status comes back", where: "host", method: "PATCH", path: `${WIDGET}/status`, body: /"Up"/ },
  { write: "its copy is deleted", where: "member", method: "DELETE", path: WIDGET, body: /./ },
  { write: "its finalizer is removed", where: "host", method: "PATCH", path: WIDGET, body: /"finalizers":\[\]/ },
] as const;

beforeAll(async () => {
  const members = [memberCluster("west"), memberCluster("east")] as const;
  afterFile(() => removeWidgets(hostCluster(), members));
  const { uid } = (await clients().host.get(namespaces, { name: "kube-system" })).metadata;
  for (const member of members) await allowWidgetsIn(member, uid);
  await installWidgets({ cluster: hostCluster() }, {}, { exclusive: true, replicas: null });
});

// A failed test may have left it killed.
beforeEach(() => gated().legation.controller.start());

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  test.each(WRITES)("restarts, and the object has one copy, its change and its status: $write", async (point) => {
    const { release } = gated();
    const { host, west, east } = clients();
    onTestFinished(release);
    const labels = { [DELEGATION_LABEL]: "annotated" };
    const namespace = await freshNamespace([hostCluster(), memberCluster("west"), memberCluster("east")], { labels });
    const ref = { namespace, name: "one" };
    const restarted = killAt(gated(), namespace, { when, ...point });
    const object = { apiVersion: "shop.example.com/v1", kind: "Widget", spec: { size: 1 } };
    await host.create(widgets, { ...object, metadata: { ...ref, annotations: { [WHOLE_KEY]: "true" } } });
    const find = async (): Promise<
      { readonly client: ClusterClient; readonly copy: Stored<AnyObject> } | undefined
    > => {
      for (const client of [west, east]) {
        const copy = await client.find(widgets, ref);
        if (copy !== undefined) return { client, copy };
      }
      return undefined;
    };
    const { client } = await eventually(find, { ...PATIENT, what: "the copy" });
    await host.patch(widgets, ref, { type: "merge", body: { spec: { size: 2 } } });
    await eventuallyPasses(async () => expect((await client.get(widgets, ref)).spec).toEqual({ size: 2 }), PATIENT);
    await client.patch(widgets, ref, { type: "merge", body: { status: { phase: "Up" } } }, { subresource: "status" });
    await eventuallyPasses(async () => expect((await host.get(widgets, ref)).status).toEqual({ phase: "Up" }), PATIENT);
    await host.delete(widgets, ref);
    await eventuallyPasses(async () => {
      const left = await Promise.all([host, west, east].map((each) => each.find(widgets, ref)));
      expect(left).toEqual([undefined, undefined, undefined]);
    }, PATIENT);
    await restarted;
    expect(await createdInMembers("widgets", namespace)).toBe(1);
  });
});

describe("while the watch of its type has a gap in one member, and lists fail there", () => {
  test("a deleted object waits until that member was asked, and says why", async () => {
    const { release, trapReads } = gated();
    const { host, west, east } = clients();
    onTestFinished(release);
    const labels = { [DELEGATION_LABEL]: "annotated" };
    const namespace = await freshNamespace([hostCluster(), memberCluster("west"), memberCluster("east")], { labels });
    const ref = { namespace, name: "one" };
    const annotations = { [WHOLE_KEY]: "true", "legation.dev/clusters": "west" };
    const object = { apiVersion: "shop.example.com/v1", kind: "Widget", spec: { size: 1 } };
    await host.create(widgets, { ...object, metadata: { ...ref, annotations } });
    await eventually(() => west.find(widgets, ref), { ...PATIENT, what: "the copy" });
    // Keeps the copy once its deletion was asked for, as a conversion webhook does.
    const keep = (finalizers: readonly string[]) =>
      west.patch(widgets, ref, { type: "merge", body: { metadata: { finalizers } } });
    await keep(["example.com/keep"]);
    onTestFinished(async () => void (await keep([]).catch(() => undefined)));
    trapReads("west", { catches: (path) => path.includes("/widgets"), lists: 500, cutsWatches: true });
    await host.delete(widgets, ref);
    await eventuallyPasses(async () => {
      const { items } = await host.list(events, { namespace });
      const told = items.filter(({ reason }) => reason === "DeletionNotConfirmed");
      expect(told.map(({ message }) => message)).toEqual([
        expect.stringContaining("west: whether it still has a copy"),
      ]);
    }, PATIENT);
    expect(await west.find(widgets, ref), "the copy stands").toBeDefined();
    expect(await host.find(widgets, ref), "the host's object waits for it").toBeDefined();
    release();
    await keep([]);
    await eventuallyPasses(async () => {
      const left = await Promise.all([host, west, east].map((each) => each.find(widgets, ref)));
      expect(left).toEqual([undefined, undefined, undefined]);
    }, PATIENT);
  });
});
