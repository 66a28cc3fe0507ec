import { describe, expect, test } from "vitest";
import {
  awaitsToken,
  concernsHost,
  mirror,
  observedAt,
  recurrence,
  recurs,
} from "../../../../src/controllers/pod-events/mirror.ts";
import type { EventParts } from "../../../support/builders/event.ts";
import { kubeletEvent } from "../../../support/builders/event.ts";

const proxy = { cluster: "cern", namespace: "team", name: "web-0", uid: "proxy-uid" };

describe("a kubelet that is faster than the Secret with the pod's token", () => {
  const mounting = (parts: EventParts = {}) =>
    kubeletEvent({
      reason: "FailedMount",
      message:
        'MountVolume.SetUp failed for volume "kube-api-access-x2x8v" : secret "legation-api-proxy-uid" not found',
      ...parts,
    });

  test.each<[string, EventParts, boolean]>([
    ["at first", {}, true],
    ["seven seconds later", { count: 5, lastTimestamp: "2024-01-01T00:00:07Z" }, true],
    ["fifteen seconds later", { count: 6, lastTimestamp: "2024-01-01T00:00:15Z" }, false],
    [
      "by the newer API",
      { ...({ firstTimestamp: null, lastTimestamp: null } as object), eventTime: "2024-01-01T00:00:00.5Z" },
      true,
    ],
    ["for a Secret of the pod's author", { message: 'secret "mine" not found' }, false],
    ["for another pod's token", { message: 'secret "legation-api-other" not found' }, false],
  ])("is left out on the host, and what lasts is not: %s", (_, parts, expected) => {
    expect(awaitsToken(mounting(parts), proxy)).toBe(expected);
  });
});

describe("a delegate's event on its proxy", () => {
  test("has the member's content, except for its name and the object that it is about", () => {
    const event = { ...kubeletEvent({ related: { kind: "Node", name: "node-1" } }), fieldOfTheFuture: [1] };
    const { metadata: _, involvedObject: __, related: ___, ...told } = event;
    expect(mirror(event, proxy, "west")).toEqual({
      ...told,
      metadata: { name: "web-0.0f8fad5bd9cb469f", namespace: "team", annotations: { "legation.dev/cluster": "west" } },
      involvedObject: {
        apiVersion: "v1",
        kind: "Pod",
        namespace: "team",
        name: "web-0",
        uid: "proxy-uid",
        fieldPath: "spec.containers{main}",
      },
    });
  });

  test("has the time of the member's event in its name, by which events of a pod are sorted", () => {
    const names = ["web-0.18bb5c5a1f0e2d3c", "web-0.18bb5c5a1f0e2d3d"];
    const mirrored = names.map((name, index) =>
      mirror(kubeletEvent({ name, uid: `${9 - index}-rest` }), proxy, "west"),
    );
    expect(mirrored.map(({ metadata }) => metadata.name)).toEqual(names);
  });

  test.each([
    ["of another pod's name", "web-00.18bb5c5a1f0e2d3c"],
    ["with an end that is no time", "web-0.started"],
    ["with an end that is longer", "web-0.18bb5c5a1f0e2d3c0"],
  ])("has digits of its uid in place of a name %s", (_, name) => {
    expect(mirror(kubeletEvent({ name }), proxy, "west").metadata.name).toBe("web-0.0f8fad5bd9cb469f");
  });

  test("has a valid name, however long the pod's is", () => {
    const name = `${"a".repeat(235)}-${"b".repeat(17)}`;
    const mirrored = mirror(kubeletEvent(), { ...proxy, name }, "west");
    expect(mirrored.metadata.name).toBe(`${"a".repeat(235)}.0f8fad5bd9cb469f`);
    expect(mirrored.involvedObject.name).toBe(name);
  });

  test.each([
    ["FailedScheduling", false],
    ["NotTriggerScaleUp", false],
    ["TriggeredScaleUp", true],
    ["Scheduled", true],
    ["BackOff", true],
    ["Preempted", true],
  ])("is copied for the reason %s: %s", (reason, told) => {
    expect(concernsHost(kubeletEvent({ reason }))).toBe(told);
  });
});

describe("the repetition of an event", () => {
  test.each<[string, EventParts, boolean]>([
    ["the first time", {}, false],
    ["with a count", { count: 2 }, true],
    ["in a series", { series: { count: 2, lastObservedTime: "2024-01-01T00:00:00.000000Z" } }, true],
  ])("is recognised %s", (_, parts, expected) => {
    expect(recurs(kubeletEvent(parts))).toBe(expected);
  });

  test("changes only the fields that count it", () => {
    const event = kubeletEvent({ count: 3, lastTimestamp: "2024-01-01T00:00:09Z", message: "again" });
    expect(JSON.parse(JSON.stringify(recurrence(event)))).toEqual({
      count: 3,
      lastTimestamp: "2024-01-01T00:00:09Z",
      message: "again",
    });
  });
});

test.each<[string, EventParts, string]>([
  ["when it happened last", { lastTimestamp: "2024-01-01T01:00:00Z" }, "2024-01-01T01:00:00Z"],
  [
    "when its series was last observed",
    { series: { count: 2, lastObservedTime: "2024-01-01T02:00:00.000001Z" } },
    "2024-01-01T02:00:00Z",
  ],
  ["when it was made, by the API server's clock", { lastTimestamp: "2023-12-31T00:00:00Z" }, "2024-01-01T00:00:00Z"],
])("is dated by %s", (_, parts, expected) => {
  expect(observedAt(kubeletEvent(parts))).toBe(Date.parse(expected));
});
