import { describe, expect, test } from "vitest";
import type { Lease, Stored } from "../../../../../src/api/kubernetes.ts";
import { leaseFinding } from "../../../../../src/cli/explain/installation/controller.ts";
import { NOW, stored } from "./given.ts";

describe("the controllers' lease", () => {
  const lease = (holderIdentity: string, renewTime: string): Stored<Lease> => ({
    metadata: { name: "l", ...stored },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime },
  });

  test.each([
    ["none", undefined, "FAIL", "none has ever led"],
    ["a released one", lease("", "2026-11-27T11:59:00Z"), "FAIL", "no controller leads for 60s: the last one stopped"],
    ["an old one", lease("a", "2026-11-27T11:50:00Z"), "FAIL", "a has not renewed its lease for 10m"],
    ["a fresh one", lease("a", "2026-11-27T11:59:55Z"), "OK", "a controller leads (a), and renewed its lease 5s ago"],
  ])("%s", (_, given, state, what) => {
    const found = leaseFinding(given, { now: NOW, inCluster: false, shard: "" });
    expect(found).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test("is mended in the cluster by kubectl", () => {
    expect(leaseFinding(undefined, { now: NOW, inCluster: true, shard: "" }).remedy).toContain(
      "rollout restart deployment",
    );
  });
});
