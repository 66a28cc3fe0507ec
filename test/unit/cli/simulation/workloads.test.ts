import { describe, expect, test } from "vitest";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { plan } from "../plan/plan-with.ts";
import { host } from "./host.ts";

describe("pods of", () => {
  const template = {
    metadata: { annotations: { "legation.dev/delegate": "true" } },
    spec: { containers: [{ name: "main" }] },
  };
  const workload = (apiVersion: string, kind: string, spec: object): WrittenObject => ({
    apiVersion,
    kind,
    metadata: { name: "web" },
    spec: { template, ...spec },
  });

  test.each<[string, WrittenObject, string[], string[]]>([
    ["ReplicaSet", workload("apps/v1", "ReplicaSet", { replicas: 2 }), ["web-*0", "web-*1"], []],
    ["ReplicationController", workload("v1", "ReplicationController", { replicas: 1 }), ["web-*0"], []],
    ["StatefulSet", workload("apps/v1", "StatefulSet", { replicas: 2 }), ["web-0", "web-1"], []],
    [
      "Job of more than come at once",
      workload("batch/v1", "Job", { parallelism: 2, completions: 5 }),
      ["web-*0", "web-*1"],
      ["3 more pods come as those end"],
    ],
    ["Job of fewer", workload("batch/v1", "Job", { parallelism: 5, completions: 1 }), ["web-*0"], []],
    ["indexed Job", workload("batch/v1", "Job", { completionMode: "Indexed", completions: 1 }), ["web-0-*"], []],
    [
      "CronJob",
      workload("batch/v1", "CronJob", { schedule: "@daily", jobTemplate: { spec: { parallelism: 2, template } } }),
      ["web-planned-*0", "web-planned-*1"],
      ["for one run of it"],
    ],
    [
      "Pod",
      { apiVersion: "v1", kind: "Pod", ...template, metadata: { name: "web", ...template.metadata } },
      ["web"],
      [],
    ],
  ])("%s", async (_, object, names, notes) => {
    const { workloads } = await plan(host({ west: {} }), object);
    expect(workloads[0]?.pods.map(({ name }) => name)).toEqual(names);
    expect(workloads[0]).toMatchObject({ outcome: "fits", notes });
  });

  test("bare pods of one generateName are planned one by one", async () => {
    const generated = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { generateName: "d-", ...template.metadata },
      spec: { containers: [{ name: "main", resources: { requests: { cpu: "6" } } }] },
    };
    const { workloads, fits } = await plan(host({ west: {} }), generated, generated, generated);
    expect(workloads.map(({ name, outcome }) => [name, outcome])).toEqual([
      ["d-*", "fits"],
      ["d-*2", "fits"],
      ["d-*3", "waits"],
    ]);
    expect(fits).toBe(false);
  });

  test("a DaemonSet stay on the host, and a Service has none", async () => {
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "web" } };
    const daemons = { ...template, metadata: { labels: { app: "web" } } };
    const { workloads, fits } = await plan(host({}), workload("apps/v1", "DaemonSet", { template: daemons }), service);
    expect(workloads).toMatchObject([{ kind: "DaemonSet", outcome: "notDelegated" }]);
    expect(fits).toBe(true);
  });
});
