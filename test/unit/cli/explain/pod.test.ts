import { describe, expect, test } from "vitest";
import { journeyOf } from "../../../../src/cli/explain/pod.ts";
import { journeyText } from "../../../../src/cli/status/pod-text.ts";
import { containerStatus, pod, proxyPod } from "../../../support/builders/pod.ts";
import { recordedSession } from "../session.ts";
import { AT, bound, scheduled } from "./pod-way.ts";

describe("one pod's way", () => {
  test("of a finished pod goes from creation to exit code", () => {
    const journey = journeyOf(
      proxyPod({
        metadata: bound,
        spec: { nodeName: "legation-west" },
        status: {
          phase: "Failed",
          startTime: AT(3),
          conditions: [scheduled],
          containerStatuses: [
            containerStatus({
              restartCount: 1,
              state: { terminated: { exitCode: 3, reason: "Error", startedAt: AT(4), finishedAt: AT(9) } },
            }),
          ],
        },
      }),
      [],
    );
    expect(journey).toMatchObject({ cluster: "west", delegateUid: "d-1", memberNode: "west-node-1", delegated: true });
    expect(journey.stations.map(({ at, clock, what }) => [at, clock, what])).toEqual([
      [AT(0), "host", "created"],
      [AT(0), "host", "admitted as a proxy"],
      [undefined, undefined, "placed in west"],
      [undefined, undefined, "delegate made in west"],
      [undefined, undefined, "scheduled in west"],
      [AT(2), "host", "bound to node legation-west"],
      [AT(3), "west", "accepted by the kubelet"],
      [AT(4), "west", "containers started"],
      [AT(9), "west", "finished: Failed"],
    ]);
    expect(journey.stations.flatMap(({ details }) => details)).toEqual([
      "by Job train",
      "its annotations limit it to no member: the best of those with room got it",
      "uid d-1",
      "only west records when, and it was not read there",
      "on its node west-node-1",
      "the host learned that the delegate was scheduled",
      "main restarted 1 times",
      "main: exit code 3 (Error)",
    ]);
  });

  test("names the containers that its member added, and how to read their logs when they fail", () => {
    const added = {
      type: "legation.dev/AddedContainers",
      status: "True",
      reason: "ContainerFailing",
      message: "setup; mesh waits: CrashLoopBackOff, exit code 7 (Error), 3 restarts",
      lastTransitionTime: AT(3),
    };
    const status = { phase: "Running", startTime: AT(3), conditions: [scheduled, added] };
    const journey = journeyOf(proxyPod({ metadata: bound, spec: { nodeName: "legation-west" }, status }), []);
    expect(journey.stations.at(-1)).toEqual({
      at: AT(3),
      clock: "host",
      what: "west added containers",
      details: ["setup", "mesh waits: CrashLoopBackOff, exit code 7 (Error), 3 restarts"],
    });
    expect(journey.troubles).toMatchObject([
      {
        what: expect.stringContaining("containers that west added fail: "),
        remedy: expect.stringContaining("`legation logs "),
      },
    ]);
    const quiet = { ...added, reason: "ContainerAdded" };
    expect(journeyOf(proxyPod({ metadata: bound, status: { ...status, conditions: [quiet] } }), []).troubles).toEqual(
      [],
    );
  });

  const unschedulable = { ...scheduled, status: "False", reason: "Unschedulable", message: "0/2 nodes fit" };
  const marked = (value: string, annotations: Record<string, string> = {}) => ({
    creationTimestamp: AT(0),
    labels: { "legation.dev/proxy": value },
    annotations,
  });
  test.each([
    [
      "that the host has not judged",
      pod({ metadata: marked("overflow") }),
      "waits for this cluster's scheduler, which is asked first",
    ],
    [
      "for which the host has no node",
      pod({ metadata: marked("overflow"), status: { phase: "Pending", conditions: [unschedulable] } }),
      "this cluster's scheduler has no node for it",
    ],
    [
      "for which the host makes room",
      pod({
        metadata: marked("overflow"),
        status: { phase: "Pending", conditions: [unschedulable], nominatedNodeName: "node-1" },
      }),
      "waits until this cluster's scheduler has made room on node-1",
    ],
    [
      "that has overflowed",
      pod({
        metadata: marked("true", { "legation.dev/cluster": "west" }),
        spec: { nodeName: "legation-west" },
        status: { phase: "Pending", conditions: [scheduled] },
      }),
      "overflowed to west; bound to node legation-west",
    ],
    [
      "not, but that was bound to a lost member",
      proxyPod({
        metadata: marked("true", { "legation.dev/cluster": "west" }),
        spec: { nodeName: "legation-west" },
        status: { phase: "Pending", conditions: [scheduled] },
      }),
      "left with lost member west; bound to node legation-west",
    ],
  ])("names the step of a pod in overflow mode %s", (_, waiting, what) => {
    expect(journeyOf(waiting, []).stations.at(-1)).toMatchObject({ what });
  });

  test("of a pod that no member takes has a reason for each member", () => {
    const condition = {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message: "east: cpu: 100 requested, 2 left; west: cordoned",
      lastTransitionTime: AT(1),
    };
    const { stations } = journeyOf(
      proxyPod({ metadata: { creationTimestamp: AT(0) }, status: { phase: "Pending", conditions: [condition] } }),
      [],
    );
    expect(stations.at(-1)).toEqual({
      at: AT(1),
      clock: "host",
      what: "waits for a member cluster: Unschedulable",
      details: ["east: cpu: 100 requested, 2 left", "west: cordoned"],
      reasons: [
        { member: "east", message: "cpu: 100 requested, 2 left" },
        { member: "west", message: "cordoned" },
      ],
    });
  });

  test.each([
    ["no controller has reported on", proxyPod(), "waits for a member cluster; no controller has reported on it yet"],
    [
      "scheduling gates hold back",
      proxyPod({ spec: { schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] } }),
      "waits for its scheduling gates",
    ],
    ["is not delegated", pod(), "waits for a scheduler"],
    [
      "waits for its image",
      proxyPod({
        metadata: bound,
        spec: { nodeName: "legation-west" },
        status: {
          phase: "Pending",
          containerStatuses: [containerStatus({ state: { waiting: { reason: "ImagePullBackOff" } } })],
        },
      }),
      "Pending: containers wait",
    ],
  ])("ends with the present step of a pod that %s", (_case, one, what) => {
    expect(journeyOf(one, []).stations.at(-1)?.what).toBe(what);
  });

  test("of a pod that is being deleted names the time of the request and the finalizers", () => {
    const { stations } = journeyOf(
      proxyPod({ metadata: { ...bound, deletionTimestamp: AT(40), deletionGracePeriodSeconds: 30 } }),
      [],
    );
    expect(stations).toContainEqual({
      at: AT(10),
      clock: "host",
      what: "deletion asked for (grace 30 s)",
      details: ["held by legation.dev/delegate"],
    });
  });

  test("ends with the pod's events, oldest first", () => {
    const event = (reason: string, lastTimestamp: string): Parameters<typeof journeyOf>[1][number] => ({
      metadata: {},
      involvedObject: {},
      type: "Warning",
      reason,
      message: "m",
      lastTimestamp,
    });
    const journey = journeyOf(proxyPod({ metadata: bound }), [event("Second", AT(5)), event("First", AT(1))]);
    const text = journeyText(journey, recordedSession().terminal);
    expect(text).toMatch(/TIME +CLOCK +AFTER +POD team\/web-0/);
    expect(text.indexOf("First")).toBeLessThan(text.indexOf("Second"));
  });
});
