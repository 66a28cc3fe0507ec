import { describe, expect, test } from "vitest";
import type { Plan } from "../../../../src/cli/plan/outcome.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { host } from "../simulation/host.ts";
import { deployment, planWith } from "./plan-with.ts";

describe("in overflow mode", () => {
  const overflow = { "legation.dev/mode": "overflow" };
  const planned = (object: WrittenObject): Promise<Plan> =>
    planWith(host({ east: {}, west: {} }), [object], { now: 0 });

  test("notes that the host's scheduler is asked first", async () => {
    expect((await planned(deployment(1, overflow))).workloads[0]).toMatchObject({
      outcome: "fits",
      notes: ["the host's own scheduler is asked first: this is for pods that it has no room for"],
    });
  });

  test("leaves a pod with a claim on the host", async () => {
    const volumes = [
      { name: "data", emptyDir: {} },
      { name: "disk", persistentVolumeClaim: { claimName: "disk" } },
    ];
    expect((await planned(deployment(1, overflow, { volumes }))).workloads[0]).toMatchObject({
      outcome: "waits",
      pods: [
        { reason: "NotOverflowed", message: "stays on this cluster: its claim is this cluster's (spec.volumes: disk)" },
      ],
    });
  });

  test("parks no pod in a member", async () => {
    const large = { containers: [{ name: "main", resources: { requests: { cpu: "9" } } }] };
    const { workloads } = await planned(deployment(1, overflow, large));
    expect(workloads[0]?.clusters.map(({ waiting }) => waiting)).toEqual([0, 0]);
    expect(workloads[0]?.pods).toEqual([
      {
        name: "web-planned-*0",
        reason: "NotOverflowed",
        message: expect.stringMatching(/^no member cluster has room either: .*the largest node has 8/),
      },
    ]);
    const elsewhere = (await planned(deployment(1, { ...overflow, "legation.dev/clusters": "north" }))).workloads[0];
    expect(elsewhere?.pods[0]).toMatchObject({
      reason: "NotOverflowed",
      message: expect.stringContaining("no member cluster has room either: "),
    });
  });
});
