import { describe, expect, test } from "vitest";
import { clusterNameProblem, clusterSchema } from "../../../src/api/cluster.ts";

describe("clusterNameProblem", () => {
  test.each(["w", "west", "west-1", "1", "x".repeat(54)])("accepts %j", (name) => {
    expect(clusterNameProblem(name)).toBeUndefined();
  });
  test.each(["", "West", "-west", "west-", "west.eu", "wést", "a b", "x".repeat(55)])("refuses %j", (name) => {
    expect(clusterNameProblem(name)).toBeTypeOf("string");
  });
});

describe("a Cluster", () => {
  test("gets every default if only its credentials are set", () => {
    const parsed = clusterSchema.parse({ spec: { credentialsSecret: { name: "west" } } });
    expect(parsed.spec).toEqual({
      credentialsSecret: { name: "west", key: "kubeconfig" },
      createNamespaces: true,
      scheduleTimeoutSeconds: 30,
      probe: { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
    });
  });

  test.each([
    [{ credentialsSecret: {} }],
    [{ credentialsSecret: { name: "w" }, scheduleTimeoutSeconds: 0 }],
    [{ credentialsSecret: { name: "w" }, scheduleTimeoutSeconds: 3601 }],
    [{ credentialsSecret: { name: "w" }, probe: { periodSeconds: 1.5 } }],
  ])("is refused with %j", (spec) => {
    expect(clusterSchema.safeParse({ spec }).success).toBe(false);
  });
});
