import { describe, expect, test } from "vitest";
import type { Namespace, Stored } from "../../../../src/api/kubernetes.ts";
import type { DryRunAnswer } from "../../../../src/cli/plan/dry-run.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { host, namespace } from "../simulation/host.ts";
import { deployment, plan, planWithNamespaces } from "./plan-with.ts";

describe("a refused or not delegated object", () => {
  test("is refused in the webhook's words for an invalid annotation", async () => {
    const planned = await plan(host({ west: {} }), deployment(1, { "legation.dev/clusters": "West" }));
    expect(planned).toMatchObject({ fits: false, workloads: [{ outcome: "refused", pods: [] }] });
    expect(planned.workloads[0]?.message).toContain(
      'metadata: annotation legation.dev/clusters: "West" is not a DNS label',
    );
  });

  test("stays on the host without an annotation or in a namespace without the label", async () => {
    const silent = { ...deployment(1), metadata: { name: "web" } };
    expect((await plan(host({ west: {} }), silent)).workloads[0]).toMatchObject({ outcome: "notDelegated" });
    const all = { namespaces: [namespace("team", { labels: { "legation.dev/delegation": "all" } })] };
    expect((await plan(host({ west: {} }, all), silent)).workloads[0]).toMatchObject({ outcome: "fits" });
    const none = { namespaces: [namespace("team", { labels: {} })] };
    expect((await plan(host({ west: {} }, none), deployment(1))).workloads[0]?.message).toBe(
      "namespace team has no label legation.dev/delegation: its pods run on the host",
    );
  });

  test.each([
    ["Deployment", deployment(1)],
    ["Pod", { apiVersion: "v1", kind: "Pod", spec: { containers: [{ name: "main", image: "busybox" }] } }],
  ])("is a %s whose annotations ask for nothing, with the webhook's warning", async (_, object) => {
    const metadata = { name: "web", annotations: { "legation.dev/group": "flow-7" } };
    const [planned] = (await plan(host({ west: {} }), { ...object, metadata })).workloads;
    expect(planned?.outcome).toBe("notDelegated");
    expect(planned?.warnings).toEqual([expect.stringContaining("legation.dev/group: does not ask for delegation")]);
  });

  test("is refused in an overflow namespace as the webhook refuses it", async () => {
    const state = host(
      { west: {} },
      { namespaces: [namespace("team", { labels: { "legation.dev/delegation": "overflow" } })] },
    );
    expect(await plan(state, deployment(1, { "legation.dev/failover": "never" }))).toMatchObject({
      fits: false,
      workloads: [
        { kind: "Deployment", outcome: "refused", pods: [], message: expect.stringContaining("own nodes, too") },
      ],
    });
  });

  const written = (name: string, metadata: object): WrittenObject => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, ...metadata },
  });
  const optedIn = { labels: { "legation.dev/delegation": "all" } };

  test("is refused in a missing namespace, unless the manifest creates that", async () => {
    const bare = host({ west: {} }, { namespaces: [] });
    expect((await plan(bare, deployment(1))).workloads[0]?.message).toContain("namespace team is neither on the host");
    const planned = await planWithNamespaces(bare, [written("team", optedIn), deployment(1)]);
    expect(planned).toMatchObject({
      fits: true,
      notChecked: [expect.stringMatching(/ in namespace team: the manifest creates or changes the namespace$/)],
    });
  });

  test("is refused in a namespace that the API server refuses", async () => {
    const refused = async (): Promise<DryRunAnswer<never>> => ({ is: "refused", message: "no", ofQuota: false });
    const objects = [written("team", optedIn), deployment(1)];
    const planned = await planWithNamespaces(host({ west: {} }, { namespaces: [] }), objects, refused);
    expect(planned.workloads[0]).not.toHaveProperty("namespace");
    expect(planned).toMatchObject({
      fits: false,
      workloads: [
        { kind: "Namespace", name: "team", outcome: "refused", message: "no" },
        { kind: "Deployment", outcome: "refused", message: "namespace team would be refused itself" },
      ],
    });
    expect(await planWithNamespaces(host({ west: {} }), objects, refused)).toMatchObject({
      fits: false,
      workloads: [
        { kind: "Namespace", outcome: "refused" },
        { kind: "Deployment", outcome: "fits" },
      ],
    });
  });

  test("has a dry-run of its namespace only if the manifest changes that, and names a missing right", async () => {
    const asked: string[] = [];
    const ask = async ({ metadata }: Stored<Namespace>): Promise<DryRunAnswer<never>> => {
      asked.push(metadata.name);
      return { is: "notChecked", why: "you may not patch namespaces" };
    };
    const same = { labels: { "legation.dev/delegation": "annotated" } };
    const planned = await planWithNamespaces(host({ west: {} }), [written("team", same), deployment(1)], ask);
    expect(planned).toMatchObject({ fits: true, notChecked: [] });
    expect(asked).toEqual([]);
    const changed = await planWithNamespaces(host({ west: {} }), [written("team", optedIn), deployment(1)], ask);
    expect(changed.fits).toBe(true);
    expect(changed.notChecked).toContain("namespace team: you may not patch namespaces");
  });

  test("waits for its scheduling gates", async () => {
    const planned = await plan(host({ west: {} }), deployment(1, {}, { schedulingGates: [{ name: "quota" }] }));
    expect(planned.workloads[0]?.pods[0]).toMatchObject({ reason: "SchedulingGated" });
  });
});
