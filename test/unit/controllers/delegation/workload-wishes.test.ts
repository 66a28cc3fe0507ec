import { afterEach, beforeEach, expect, test } from "vitest";
import type { KubeObject, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { WorkloadWishes } from "../../../../src/controllers/delegation/workload-wishes.ts";
import type { ListOptions, WatchEvent, WatchOptions } from "../../../../src/kube/client.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { listing } from "../../../support/builders/answers.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const CLUSTERS = "legation.dev/clusters";
const signal = new AbortController().signal;

let clock: FakeClock;
/** The Deployments of the host: those that the watch selects, and all. */
let labeled: object[];
let stored: object[];
let asked: ListOptions[];
let forbidden: boolean;
let changed: string[];
let wishes: WorkloadWishes;

function deployment(name: string, annotations: Record<string, string>): Stored<KubeObject> {
  return { metadata: { namespace: "team", name, uid: name, resourceVersion: "1", annotations } };
}

function podOf(name: string, spec: object = {}): Stored<Pod> {
  return proxyPod({ metadata: { annotations: { "legation.dev/wishes-of": `Deployment/${name}` } }, spec });
}

beforeEach(async () => {
  clock = new FakeClock();
  labeled = [deployment("web", { [CLUSTERS]: "west", "example.com/large": "x" })];
  stored = [];
  asked = [];
  forbidden = false;
  changed = [];
  const host = fakeClient({
    list: listing((plural, options) => {
      if (forbidden) throw kubeError("Forbidden", "no", { cluster: "host", verb: "list" });
      if (options.fieldSelector !== undefined) asked.push(options);
      const items = options.fieldSelector === undefined ? labeled : stored;
      return plural === "deployments" ? items : [];
    }),
    watch: async function* <T extends KubeObject>(
      _resource: Resource<T>,
      { onOpen, signal: ends }: WatchOptions,
    ): AsyncGenerator<WatchEvent<T>> {
      onOpen?.();
      await new Promise((_, reject) => ends.addEventListener("abort", () => reject(ends.reason)));
    },
  });
  const log = createLogger({ level: "silent" });
  wishes = new WorkloadWishes({ host, clock, log, onChange: (namespace) => changed.push(namespace) });
});
afterEach(() => wishes.stop());

test("gives pods the wishes of workloads that the watch shows, and nothing else of them", async () => {
  await wishes.start(signal);
  expect(wishes.of(podOf("web"))).toEqual({ annotations: { [CLUSTERS]: "west" } });
  expect(changed).toEqual(["team"]);
});

test.each<[string, object[], Record<string, string>]>([
  ["written while no webhook marked it", [deployment("api", { [CLUSTERS]: "east" })], { [CLUSTERS]: "east" }],
  ["gone", [], {}],
])("reads metadata of a workload that no watch shows once, and tells: %s", async (_, found, annotations) => {
  await wishes.start(signal);
  stored = found;
  changed = [];
  expect(wishes.of(podOf("api")).unseen).toEqual({ kind: "Deployment", name: "api" });
  wishes.of(podOf("api"));
  await clock.advance(1_000);
  expect(asked).toMatchObject([{ namespace: "team", fieldSelector: "metadata.name=api", metadataOnly: true }]);
  expect(changed).toEqual(["team"]);
  expect(wishes.of(podOf("api"))).toEqual({ annotations });
});

test("reads no workload of a pod that has its node", async () => {
  await wishes.start(signal);
  expect(wishes.of(podOf("api", { nodeName: "legation-west" })).unseen).toBeDefined();
  await clock.advance(1_000);
  expect(asked).toEqual([]);
});

test("starts without the right to list workloads, whose pods then wait", async () => {
  forbidden = true;
  await wishes.start(signal);
  expect(wishes.of(podOf("web")).unseen).toEqual({ kind: "Deployment", name: "web" });
  await clock.advance(1_000);
  expect(wishes.of(podOf("web")).unseen).toBeDefined();
});
