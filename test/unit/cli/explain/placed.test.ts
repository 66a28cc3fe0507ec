import { describe, expect, test } from "vitest";
import type { KubeEvent } from "../../../../src/api/kubernetes.ts";
import { journeyOf } from "../../../../src/cli/explain/pod.ts";
import { journeyText } from "../../../../src/cli/status/pod-text.ts";
import { containerStatus, proxyPod } from "../../../support/builders/pod.ts";
import { recordedSession } from "../session.ts";
import { AT, bound, scheduled } from "./pod-way.ts";

describe("one pod's way", () => {
  const ofWest = (reason: string, at: string, message = "m"): KubeEvent => ({
    metadata: { annotations: { "legation.dev/cluster": "west" } },
    involvedObject: {},
    reason,
    message,
    firstTimestamp: at,
    lastTimestamp: AT(59),
  });

  test("has its causes in order, though the Binding is written last, and times of the member's own events", () => {
    const journey = journeyOf(
      proxyPod({
        metadata: bound,
        spec: { nodeName: "legation-west" },
        status: {
          phase: "Running",
          startTime: AT(3),
          conditions: [
            { ...scheduled, lastTransitionTime: AT(5) },
            { ...scheduled, type: "Ready", lastTransitionTime: AT(4) },
          ],
          containerStatuses: [containerStatus({ state: { running: { startedAt: AT(4) } } })],
        },
      }),
      [
        ofWest("Scheduled", AT(3)),
        ofWest("Pulled", AT(4), "pulled busybox in 300ms"),
        { ...ofWest("NotTakenByMember", AT(5), "north: full; placed in west"), metadata: {} },
      ],
    );
    expect(journey.stations.map(({ at, clock, what }) => [at, clock, what])).toEqual([
      [AT(0), "host", "created"],
      [AT(0), "host", "admitted as a proxy"],
      [undefined, undefined, "placed in west"],
      [undefined, undefined, "delegate made in west"],
      [AT(3), "west", "scheduled in west"],
      [AT(5), "host", "bound to node legation-west"],
      [AT(3), "west", "accepted by the kubelet"],
      [AT(4), "west", "images pulled"],
      [AT(4), "west", "containers started"],
      [AT(4), "west", "ready"],
    ]);
    expect(journey.stations.flatMap(({ details }) => details)).toEqual(
      expect.arrayContaining(["before it: north: full", "pulled busybox in 300ms"]),
    );
  });

  test("has when it was placed and its delegate made by the member's clock where that was read, and says what is not on record", () => {
    const one = proxyPod({
      metadata: bound,
      spec: { nodeName: "legation-west" },
      status: { phase: "Running", startTime: AT(3), conditions: [scheduled] },
    });
    const journey = journeyOf(one, [], {}, { troubles: [], delegateMade: AT(1) });
    expect(journey.stations.find(({ what }) => what === "delegate made in west")).toEqual({
      at: AT(1),
      clock: "west",
      what: "delegate made in west",
      details: ["uid d-1"],
    });
    const text = journeyText(journey, recordedSession().terminal);
    expect(text).toMatch(/^2026-01-01T00:00:01Z +west +\+1s +placed in west$/m);
    expect(text).toMatch(/^2026-01-01T00:00:01Z +west +\+1s +delegate made in west$/m);
    const unread = journeyText(journeyOf(one, []), recordedSession().terminal);
    expect(unread).toMatch(/^not on record +placed in west$/m);
  });

  test.each([
    [{ "legation.dev/clusters": "west,east" }, "legation.dev/clusters: west,east"],
    [{ "legation.dev/cluster-selector": "gpu=true" }, "legation.dev/cluster-selector: gpu=true"],
    [{ "legation.dev/group": "a" }, "legation.dev/group: a"],
    [{ "legation.dev/wishes-of": "Deployment/web" }, "legation.dev/wishes-of: Deployment/web"],
  ])("says why a pod with %o is where it is", (wishes, why) => {
    const annotations = { ...bound.annotations, ...wishes };
    const one = proxyPod({ metadata: { ...bound, annotations }, spec: { nodeName: "legation-west" } });
    expect(journeyOf(one, []).stations.find(({ what }) => what === "placed in west")?.details).toEqual([why]);
  });
});
