import { expect, onTestFinished, test } from "vitest";
import type { Namespace, Pod } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { OverflowController } from "../../../../src/controllers/overflow/controller.ts";
import { OverflowPlacement } from "../../../../src/controllers/overflow/placement.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import type { NewEvent } from "../../../../src/runtime/event-recorder.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { clientOf } from "../../../support/api-server/client.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { cluster } from "../../../support/builders/member.ts";
import { pod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { placementOver } from "../../scheduling/placement-over.ts";

const log = createLogger({ level: "silent" });
const OVERFLOW = { "legation.dev/proxy": "overflow" };
const FIND_AGAIN_MS = 10_000;

/** A pod for which the host has no node, or which has one. */
function waiting(uid: string, spec: Partial<Pod["spec"]> = {}, annotations: Record<string, string> = {}): Pod {
  const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/1 nodes" };
  const metadata = { labels: OVERFLOW, annotations: { "legation.dev/overflow-after": "1s", ...annotations } };
  return pod({ uid, name: "web", metadata, spec, status: { phase: "Pending", conditions: [condition] } });
}

interface Setting {
  readonly minor?: string;
  /** Reports whether lists fail now. */
  readonly isFailing?: () => boolean;
  /** Called when the controller asks which members there are. */
  readonly onClusters?: () => void;
}

/** A controller on a host with one member, and what it tells authors. */
async function running({ minor = "36", isFailing = () => false, onClusters = () => {} }: Setting = {}) {
  const host = new MemoryCluster("host", "host");
  host.kubernetesVersion = { major: "1", minor, gitVersion: `v1.${minor}.0` };
  const clock = new FakeClock();
  const events = new Events<ControllerEvents>();
  const namespaces = new Store<Namespace>();
  const labels = { "legation.dev/delegation": "overflow" };
  namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1", labels } });
  const homeApi = () => ({ state: "unknown", message: "" }) as const;
  const { proxies, placementState } = placementOver([candidateNamed("west")], { namespaces, homeApi });
  const observe = () => expect.unreachable();
  const placement = new OverflowPlacement({ placementState, identity: HOST, proxies, observe, events });
  const told: string[] = [];
  const controller = new OverflowController({
    host: clientOf(host, { way: { failsToList: isFailing } }),
    identity: HOST,
    registry: {
      clusters: () => {
        onClusters();
        return [cluster("west")];
      },
      member: () => undefined,
    },
    events,
    placement,
    recorder: { record: (_about: object, { message }: NewEvent) => void told.push(message) },
    copyRefusal: () => undefined,
    providesClasses: () => false,
    clock,
    log,
  });
  const stopped = new AbortController();
  onTestFinished(() => controller.stop());
  return { controller, host, clock, told, events, start: () => controller.start(stopped.signal) };
}

test("tells a pod once why it stays on a host that is too old, and another of its name again", async () => {
  const { host, clock, told, start } = await running({ minor: "34" });
  host.put(pods, waiting("first"));
  await start();
  await clock.advance(1_500);
  expect(told).toEqual([expect.stringContaining("must be Kubernetes 1.35 or newer")]);
  host.put(pods, waiting("first", {}, { changed: "once" }));
  await clock.advance(1_500);
  expect(told).toHaveLength(1);
  host.remake(pods, { ...waiting("second"), metadata: { ...waiting("second").metadata, name: "web" } });
  await clock.advance(1_500);
  expect(told).toHaveLength(2);
});

test("leaves a pod alone that the host's scheduler places in time", async () => {
  const { host, clock, told, start } = await running({ minor: "34" });
  host.put(pods, waiting("first"));
  await start();
  await clock.advance(500);
  host.put(pods, waiting("first", { nodeName: "worker" }));
  await clock.advance(10_000);
  expect(told).toEqual([]);
});

test("marks a pod that a Binding left unmarked, also when the host does not answer at first", async () => {
  let isFailing = false;
  let asked = 0;
  const onClusters = (): void => {
    asked += 1;
    isFailing = asked === 1;
  };
  const { host, clock, start } = await running({ isFailing: () => isFailing, onClusters });
  host.put(pods, waiting("first", { nodeName: "legation-west" }));
  const labelOf = () => host.peek(pods, { namespace: "team", name: "web" })?.metadata.labels?.["legation.dev/proxy"];
  await start();
  await clock.advance(FIND_AGAIN_MS - 1);
  expect([asked, labelOf()]).toEqual([1, "overflow"]);
  await clock.advance(1);
  expect([asked, labelOf()]).toEqual([2, "true"]);
});

test("asks no more for unmarked pods once it has stopped", async () => {
  let asked = 0;
  const { controller, clock, start } = await running({
    isFailing: () => asked > 0,
    onClusters: () => {
      asked += 1;
    },
  });
  await start();
  await clock.advance(1);
  await controller.stop();
  await clock.advance(FIND_AGAIN_MS);
  expect([asked, clock.pending]).toEqual([1, 0]);
});
