import { expect, test } from "vitest";
import { QUOTA_FLOOR_ANNOTATION, QUOTA_SHARE_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterQueue } from "../../../../src/api/kueue.ts";
import type { FlavorCapacity } from "../../../../src/controllers/queues/capacity.ts";
import { QUOTAS } from "../../../../src/controllers/queues/quotas.ts";

function queue(cpu: string, memory: string, annotations: Readonly<Record<string, string>> = {}): Stored<ClusterQueue> {
  const resources = [
    { name: "cpu", nominalQuota: cpu, borrowingLimit: "1" },
    { name: "memory", nominalQuota: memory },
  ];
  return {
    metadata: {
      ...{ name: "team", uid: "team-uid", resourceVersion: "1" },
      annotations: { "legation.dev/quota": "follow", ...annotations },
    },
    spec: {
      resourceGroups: [
        { flavors: [{ name: "own", resources: [{ name: "cpu", nominalQuota: "5" }] }] },
        { flavors: [{ name: "west", resources }] },
      ],
    },
  };
}

function changeOf(of: Stored<ClusterQueue>, parts: Partial<FlavorCapacity> = {}): ReturnType<typeof QUOTAS.changeOf> {
  const west = { free: { cpu: 100, memory: 2 ** 30 }, staying: new Map(), closed: new Map(), ...parts };
  return QUOTAS.changeOf(of, new Map([["west", west]]), [of], 0);
}

const content = (...changes: readonly (readonly string[])[]): object => ({ content: JSON.stringify(changes) });

test("a quota that is true is left alone", () => {
  expect(changeOf(queue("100", "1Gi"))).toBeUndefined();
});

test("the quota is the share of what is free, and what stays beside it", () => {
  const parts = { free: { cpu: 10.0019, memory: 2 ** 21 + 5 }, staying: new Map([["team", { cpu: 4 }]]) };
  expect(changeOf(queue("100", "1Gi", { [QUOTA_SHARE_ANNOTATION]: "50%" }), parts)).toMatchObject(
    content(["west", "cpu", "9"], ["west", "memory", "1Mi"]),
  );
});

test("no quota falls below the floor", () => {
  const floor = { [QUOTA_FLOOR_ANNOTATION]: "cpu=8,memory=1Gi" };
  expect(changeOf(queue("100", "1Gi", floor), { free: {} })).toMatchObject(content(["west", "cpu", "8"]));
});

test("a member that takes nothing is named when the quota falls", () => {
  const parts = { free: {}, staying: new Map([["team", { cpu: 12 }]]), closed: new Map([["west", "it is not ready"]]) };
  expect(changeOf(queue("100", "1Gi", { [QUOTA_FLOOR_ANNOTATION]: "memory=1Gi" }), parts)).toMatchObject({
    event: {
      reason: "QuotaReduced",
      message: "less quota of west: cpu 100 -> 12; what runs stays, and no more is admitted in west: it is not ready",
    },
  });
});

test("an annotation that is misspelt is told, also before members were read", () => {
  const misspelt = queue("1", "1Gi", { "legation.dev/quota": "folow" });
  expect(QUOTAS.changeOf(misspelt, undefined, [misspelt], 0)).toMatchObject({ reason: "InvalidQuota" });
  expect(QUOTAS.changeOf(queue("1", "1Gi"), undefined, [], 0)).toBe("unknown");
  expect(changeOf(queue("1", "1Gi", { "legation.dev/quota": "folow" }))).toMatchObject({ reason: "InvalidQuota" });
});

test("a change keeps every other field of the queue", () => {
  expect(changeOf(queue("100", "1Gi"), { free: { cpu: 9, memory: 2 ** 30 } })).toMatchObject({
    body: {
      spec: {
        resourceGroups: [
          queue("100", "1Gi").spec?.resourceGroups?.[0],
          {
            flavors: [
              {
                name: "west",
                resources: [
                  { name: "cpu", nominalQuota: "9", borrowingLimit: "1" },
                  { name: "memory", nominalQuota: "1Gi" },
                ],
              },
            ],
          },
        ],
      },
    },
  });
});
