import { describe, expect, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { flavorExcludes, isQueuedObject, outsideQueue } from "../../../src/copies/queued-objects.ts";

const TYPE: Pick<DelegatedType, "spec"> = {
  spec: {
    ...{ group: "jobset.x-k8s.io", version: "v1alpha2", kind: "JobSet", plural: "jobsets", exclusive: true },
    queue: { suspend: "/spec/suspend", templates: ["/spec/replicatedJobs/*/template/spec/template"] },
  },
};
const LABELS = { app: "train", "kueue.x-k8s.io/queue-name": "team" };
const WEST = { name: "west", labels: {} };

interface Template {
  readonly metadata?: object;
  readonly spec: object;
}

function jobSet(
  suspend: boolean,
  templates: readonly Template[],
  labels: Record<string, string> = LABELS,
): Stored<AnyObject> {
  return {
    metadata: { name: "train", namespace: "team", uid: "u1", resourceVersion: "1", labels },
    spec: { suspend, replicatedJobs: templates.map((template) => ({ template: { spec: { template } } })) },
  };
}

function admittedTo(member: string): Template {
  return {
    metadata: { labels: { app: "train", "kueue.x-k8s.io/podset": "worker" } },
    spec: { containers: [], nodeSelector: { "legation.dev/cluster": member, disk: "fast" } },
  };
}

describe("an object of a queue", () => {
  test("waits while its queue keeps it suspended", () => {
    expect(isQueuedObject(jobSet(true, []), TYPE)).toBe(true);
    expect(isQueuedObject(jobSet(false, []), TYPE)).toBe(false);
    expect(isQueuedObject(jobSet(true, [], { app: "train" }), TYPE)).toBe(false);
  });

  test("has in its member neither keys of Kueue nor labels of virtual nodes, and its pods name it", () => {
    const given = outsideQueue(jobSet(false, [admittedTo("west")]), TYPE, WEST);
    const template = {
      metadata: { labels: { app: "train", "legation.dev/queued-object": "u1" } },
      spec: { containers: [], nodeSelector: { disk: "fast" } },
    };
    expect(given).toEqual(jobSet(false, [template], { app: "train" }));
  });

  test("goes to no member that the flavor of one of its pod sets leaves out", () => {
    expect(flavorExcludes(jobSet(false, [admittedTo("west")]), TYPE, WEST)).toBeUndefined();
    const both = jobSet(false, [admittedTo("west"), admittedTo("east")]);
    expect(flavorExcludes(both, TYPE, WEST)).toContain('legation.dev/cluster: "east"');
  });

  test("is given as it is written without a queue", () => {
    const object = jobSet(false, [admittedTo("east")], { app: "train" });
    expect(outsideQueue(object, TYPE, WEST)).toBe(object);
    expect(flavorExcludes(object, TYPE, WEST)).toBeUndefined();
  });
});
