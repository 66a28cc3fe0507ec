import { expect, test } from "vitest";
import { readHostStatus } from "../../../../src/cli/explain/host.ts";
import { QueueReader } from "../../../../src/cli/explain/queues.ts";
import type { ListOptions } from "../../../../src/kube/client.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { cluster, ready } from "./reported-clusters.ts";

test.each<[string, object, string | undefined]>([
  ["lists all pods of a host that has few", { pods: 5_000, requested: {} }, undefined],
  ["lists the pods without a node alone where pods are many", { pods: 5_001, requested: {} }, "spec.nodeName="],
  ["lists all pods while an older controller has not summed up what they request", { pods: 5_001 }, undefined],
])("%s", async (_, counts, fieldSelector) => {
  const asked: (ListOptions | undefined)[] = [];
  const host = fakeClient({
    raw: async () => ({ groups: [] }),
    list: async ({ plural }, options) => {
      if (plural === "pods") asked.push(options);
      const items = plural === "clusters" ? [cluster("west", { status: { ...ready("True"), ...counts } })] : [];
      return { items, resourceVersion: "1", size: 0 };
    },
  });
  const { signal } = new AbortController();
  const queues = new QueueReader({ host, namespace: "shop", clock: new FakeClock() });
  await readHostStatus(host, { namespace: "shop", queues }, signal);
  expect(asked.map((options) => options?.fieldSelector)).toEqual([fieldSelector]);
});
