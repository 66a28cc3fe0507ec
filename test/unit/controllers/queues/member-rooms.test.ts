import { expect, test } from "vitest";
import { defined } from "../../../../src/api/defined.ts";
import type { AnyObject } from "../../../../src/api/delegated-type.ts";
import type { Job, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import type { ForeignByNode } from "../../../../src/clusters/foreign-usage.ts";
import { memberRoom, unconnectedRoom } from "../../../../src/controllers/queues/member-rooms.ts";
import { objectsInMember } from "../../../../src/controllers/whole/objects/queued-work.ts";
import { JOBS } from "../../../../src/whole/jobs/type.ts";
import type { WholeInMember } from "../../../../src/whole/type.ts";
import { cluster, delegates, member } from "../../../support/builders/member.ts";

const QUEUED = { "kueue.x-k8s.io/cluster-queue-name": "team" };
const WEST = { "legation.dev/cluster": "west" };

function pod(
  name: string,
  cpu: string,
  labels: Readonly<Record<string, string>> = {},
  nodeName = "legation-west",
): Stored<Pod> {
  const main = { name: "main", resources: { requests: { cpu } } };
  return {
    metadata: { namespace: "shop", name, uid: name, resourceVersion: "1", labels },
    spec: { containers: [main], nodeSelector: WEST, nodeName },
  };
}

const FOREIGN: ForeignByNode = {
  on: (_node, without = []) => ({ cpu: [...without].length === 0 ? 7 : 3 }),
};

function room(
  proxies: readonly Stored<Pod>[],
  whole: readonly WholeInMember[] = [],
  foreignByNode: () => ForeignByNode | undefined = () => FOREIGN,
) {
  const nodes = new Map(
    proxies.map(({ metadata }) => [`shop/${metadata.name}`, pod(metadata.name, "0", {}, "node-1")]),
  );
  const west = member("west", undefined, {
    delegates: delegates({ get: (key) => (key === "shop/unwatched" ? undefined : nodes.get(key)) }),
    foreign: { cpu: 9 },
    foreignByNode,
    nodes: [],
  });
  return memberRoom(west, { proxies: { byIndex: () => [...proxies] }, wholeInMember: () => whole });
}

test("pods of a queue are named with their node, and others are use of it", () => {
  const { queued, usedOn } = room([pod("queued", "2", QUEUED), pod("plain", "4")]);
  expect(queued).toEqual([{ queue: "team", nodeSelector: WEST, requests: { cpu: 2, pods: 1 }, node: "node-1" }]);
  expect(usedOn("node-1")).toEqual({ cpu: 11, pods: 1 });
});

test("pods of other shards, whose delegates are not watched, are on the node that their Binding recorded", () => {
  const { metadata, spec } = pod("unwatched", "2", QUEUED);
  const proxy = {
    metadata: { ...metadata, annotations: { "legation.dev/member-node": "node-2" } },
    ...defined({ spec }),
  };
  expect(room([proxy]).queued).toMatchObject([{ queue: "team", node: "node-2" }]);
});

test("others' use is borne by all nodes until it was read by node", () => {
  const { usedOn, usedSomewhere } = room([], [], () => undefined);
  expect([usedOn("node-1"), usedSomewhere]).toEqual([{}, { cpu: 9 }]);
  expect(room([]).usedSomewhere).toEqual({});
});

test("pods that have ended use nothing, and those of which the queue is not known are no others' use", () => {
  const ended = { ...pod("ended", "4"), status: { phase: "Succeeded" } };
  const { queued, usedOn } = room([ended, pod("old", "4", { "kueue.x-k8s.io/managed": "true" })]);
  expect(queued).toEqual([]);
  expect(usedOn("node-1")).toEqual({ cpu: 7 });
});

test("a whole Job of a queue is its running pods, which are no others' use", () => {
  const template = {
    metadata: { labels: QUEUED },
    spec: { containers: [{ name: "main", resources: { requests: { cpu: "2" } } }], nodeSelector: WEST },
  };
  const metadata = { namespace: "shop", name: "sum", uid: "host-uid", resourceVersion: "1" };
  const object: Stored<Job> = { metadata, spec: { template }, status: { active: 3 } };
  const whole = JOBS.inMember(object);
  expect(whole.owner).toBe("shop/sum");
  const { queued, usedOn } = room([], [whole]);
  expect(queued).toEqual([{ queue: "team", nodeSelector: WEST, requests: { cpu: 6, pods: 3 } }]);
  expect(usedOn("node-1")).toEqual({ cpu: 3 });
  // A Job of its name in the member is then another's.
  expect(JOBS.inMember({ ...object, status: {} })).toEqual({ pods: [] });
});

test("a whole object of a queue is the pods of its templates, in the member that has it, and they are no others' use", () => {
  const spec = { containers: [{ name: "main", resources: { requests: { cpu: "2" } } }], nodeSelector: WEST };
  const type = {
    spec: {
      ...{ group: "example.com", version: "v1", kind: "Set", plural: "sets", exclusive: true },
      queue: { suspend: "/spec/suspend", templates: ["/spec/parts/*/template"] },
    },
  };
  const object = (uid: string, labels: Readonly<Record<string, string>>): Stored<AnyObject> => ({
    metadata: {
      namespace: "shop",
      name: uid,
      uid,
      resourceVersion: "1",
      annotations: { "legation.dev/cluster": "west" },
    },
    spec: { suspend: false, parts: [{ template: { metadata: { labels }, spec } }, { template: { spec } }] },
  });
  const expressions = { hasBegun: () => true, podCounts: () => [2, 1] };
  const queued = { type, expressions, objects: [object("admitted", QUEUED), object("waiting", {})] };
  const there = room([], objectsInMember("west", queued));
  expect(there.queued).toEqual([{ queue: "team", nodeSelector: WEST, requests: { cpu: 4, pods: 2 } }]);
  expect(there.usedOn("node-1")).toEqual({ cpu: 3 });
  const elsewhere = room([], objectsInMember("east", queued));
  expect([elsewhere.queued, elsewhere.usedOn("node-1")]).toEqual([[], { cpu: 7 }]);
});

test("in a Cluster without a connection everything stays that a queue has there", () => {
  const facts = {
    proxies: { byIndex: () => [pod("queued", "2", QUEUED), pod("plain", "4")] },
    wholeInMember: () => [],
  };
  const found = unconnectedRoom(cluster("west"), facts);
  expect(found).toMatchObject({ name: "west", closed: "it has no connection", nodes: [] });
  expect(found.queued).toEqual([{ queue: "team", nodeSelector: WEST, requests: { cpu: 2, pods: 1 } }]);
});
