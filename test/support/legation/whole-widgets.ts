import { afterAll, beforeAll } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { WHOLE_KEY } from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { hostCluster, memberCluster } from "../harness/clusters.ts";
import { eventually } from "../harness/wait.ts";
import { installWidgets, removeWidgets, widgets } from "./widgets.ts";

/** CEL expression by which a widget is healthy. */
const READY = "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')";

/** Allows widgets, with rules for health and status, in all clusters until the end of the file: later files share them. */
export function useWholeWidgets(): void {
  beforeAll(async () => {
    await installWidgets(
      { cluster: hostCluster() },
      { west: memberCluster("west"), east: memberCluster("east") },
      { health: READY, status: [{ path: "/status/phase", value: "values.all(v, v == 'Up') ? 'Up' : 'Down'" }] },
    );
  });
  afterAll(() => removeWidgets(hostCluster(), [memberCluster("west"), memberCluster("east")]));
}

/** Creates the widget `one` of a namespace, of which members get a copy. */
export function createWidget(
  host: ClusterClient,
  namespace: string,
  spec: object,
  annotations: object = {},
): Promise<Stored<AnyObject>> {
  return host.create(widgets, {
    apiVersion: "shop.example.com/v1",
    kind: "Widget",
    metadata: { name: "one", namespace, annotations: { [WHOLE_KEY]: "true", ...annotations } },
    spec,
  });
}

/** Returns the widget `one` of a namespace. */
export function findWidget(client: ClusterClient, namespace: string): Promise<Stored<AnyObject> | undefined> {
  return client.find(widgets, { namespace, name: "one" });
}

/** Waits for the copy of the widget `one` in a member. */
export function widgetCopy(member: ClusterClient, namespace: string): Promise<Stored<AnyObject>> {
  return eventually(() => findWidget(member, namespace), { what: "the copy" });
}

/** Writes the status of the widget `one` as an operator of the member does. */
export async function reportWidget(
  member: ClusterClient,
  namespace: string,
  ready: "True" | "False",
  more: object = {},
): Promise<void> {
  const { generation = 0 } = (await widgetCopy(member, namespace)).metadata;
  const condition = {
    type: "Ready",
    status: ready,
    reason: "Checked",
    message: "seen",
    lastTransitionTime: "2026-01-02T03:04:05Z",
  };
  const status = {
    observedGeneration: generation,
    conditions: [{ ...condition, observedGeneration: generation }],
    ...more,
  };
  await member.patch(
    widgets,
    { namespace, name: "one" },
    { type: "merge", body: { status } },
    { subresource: "status" },
  );
}
