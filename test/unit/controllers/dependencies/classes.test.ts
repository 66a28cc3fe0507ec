import { describe, expect, onTestFinished, test } from "vitest";
import type { ClusterSpec } from "../../../../src/api/cluster.ts";
import { HOST_LABEL } from "../../../../src/api/keys.ts";
import { type KubeObject, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { DependencyController } from "../../../../src/controllers/dependencies/controller.ts";
import { DEPENDENCIES, type DependencyObject } from "../../../../src/copies/dependencies.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { FAMILIES } from "../../../../src/copies/named-by-pods.ts";
import type { WatchEvent, WatchOptions } from "../../../../src/kube/client.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { answerOf, listing, writing } from "../../../support/builders/answers.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { cluster, delegates, member } from "../../../support/builders/member.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { puttingInto, surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

function source(parts: Omit<DependencyObject, "metadata">): Stored<DependencyObject> {
  return { metadata: { name: "batch", uid: "source-uid", resourceVersion: "7" }, ...parts };
}

test("returns the classes that a pod names, except those that every cluster has", () => {
  const named = (spec: object): string[] =>
    FAMILIES.classes.of(pod({ spec })).map(({ kind, name }) => `${kind} ${name}`);
  expect(named({ priorityClassName: "batch", runtimeClassName: "gvisor" })).toEqual([
    "PriorityClass batch",
    "RuntimeClass gvisor",
  ]);
  expect(named({ priorityClassName: "system-node-critical", runtimeClassName: "" })).toEqual([]);
});

test("never copies globalDefault, nor a node selection for the host", () => {
  const chosen = { ...source({ value: 5 }), globalDefault: true };
  const made = toCopy(DEPENDENCIES.PriorityClass, chosen, HOST);
  expect(made).toMatchObject({ apiVersion: "scheduling.k8s.io/v1", value: 5, metadata: { name: "batch" } });
  expect(made).not.toHaveProperty("globalDefault");
  expect(made.metadata).not.toHaveProperty("namespace");
  const scheduling = { nodeSelector: { pool: "gpu" } };
  const overhead = { podFixed: { cpu: "10m" } };
  const scheduled = { ...source({ handler: "runc", overhead }), scheduling };
  const copy = toCopy(DEPENDENCIES.RuntimeClass, scheduled, HOST);
  expect(copy).toMatchObject({ apiVersion: "node.k8s.io/v1", handler: "runc", overhead });
  expect(copy).not.toHaveProperty("scheduling");
});

interface Clusters {
  /** Label selector of the classes that follow. */
  readonly classSelector?: ClusterSpec["classSelector"];
  /** Pods of other hosts in the member. */
  readonly others?: readonly Stored<Pod>[];
}

/** Returns a proxy with the host's PriorityClass `batch`, which the member lacks, and the member's writes. */
async function going({ classSelector, others = [] }: Clusters) {
  const clock = new FakeClock();
  const writes: string[] = [];
  const asked: string[] = [];
  let there: readonly object[] = [];
  const labels = { tier: "low" };
  const batch = { metadata: { name: "batch", uid: "source-uid", resourceVersion: "7", labels }, value: 5 };
  const host = quietClient([], {
    list: listing((plural) => {
      asked.push(plural);
      return plural === "priorityclasses" ? [batch] : [];
    }, "7"),
  });
  let onCopies = (): void => {};
  const client = quietClient([], {
    list: listing((plural, { labelSelector = "" }) => {
      if (plural === "pods") return labelSelector.includes(`${HOST_LABEL}!=${HOST.id}`) ? others : [];
      return plural === "priorityclasses" ? there : [];
    }, "8"),
    watch: async function* <T extends KubeObject>(
      { plural }: Resource<T>,
      { signal, onOpen }: WatchOptions,
    ): AsyncGenerator<WatchEvent<T>> {
      onOpen?.();
      if (plural === "priorityclasses") {
        await new Promise<void>((resolve) => {
          onCopies = resolve;
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        for (const object of there) yield { type: "ADDED", object: answerOf<T>(object), size: 1 };
      }
      if (signal.aborted) return;
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    },
    ...writing(({ verb, plural, name, body }) => {
      writes.push(`${verb} ${plural} ${name}`);
      if (verb !== "create") return undefined;
      const { metadata }: KubeObject = body;
      const copy = { ...body, metadata: { ...metadata, uid: "copy-uid", resourceVersion: "9" } };
      there = [copy];
      onCopies();
      return copy;
    }),
  });
  const proxies = new Store<Pod>();
  const spec = classSelector === undefined ? {} : { classSelector };
  const of = member("west", client, {
    cluster: cluster("west", { spec }),
    delegates: delegates({ list: () => [], countUnfinished: () => 0, unfinished: () => [] }),
  });
  const controller = new DependencyController({
    host,
    family: FAMILIES.classes,
    ...surroundings([of], clock),
    proxies,
  });
  onTestFinished(() => controller.stop());
  controller.onMembers();
  const put = puttingInto(proxies, controller, clock);
  const proxy = proxyPod({ metadata: { namespace: "team" }, spec: { priorityClassName: "batch" } });
  await put(proxy);
  proxies.synced = true;
  await clock.advance(10);
  const prepare = async (): Promise<boolean> => {
    const isThere = controller.prepare(objectKey(proxy.metadata), proxy.metadata.uid, "west");
    await clock.advance(10);
    return isThere;
  };
  /** Ends the proxy, and waits until the copy would be deleted. */
  const end = async (): Promise<void> => {
    proxies.delete(objectKey(proxy.metadata));
    controller.onProxy({ type: "deleted", object: proxy });
    await clock.advance(11_000);
  };
  return { clock, writes, asked, controller, proxy, prepare, end };
}

describe("a class that the member lacks", () => {
  test("is copied before the pod is sent, if the Cluster selects it, and deleted with the last pod", async () => {
    const { writes, prepare, end } = await going({ classSelector: { matchLabels: { tier: "low" } } });
    expect(await prepare()).toBe(false);
    expect([await prepare(), writes]).toEqual([true, ["create priorityclasses batch"]]);
    await end();
    expect(writes).toEqual(["create priorityclasses batch", "delete priorityclasses batch"]);
  });

  test("is left to the member's judgement if the Cluster selects others", async () => {
    const { writes, prepare } = await going({ classSelector: { matchLabels: { tier: "high" } } });
    expect([await prepare(), await prepare(), writes]).toEqual([true, true, []]);
  });

  test("is not even read on the host if no Cluster selects any", async () => {
    const { writes, asked, controller, proxy, prepare } = await going({});
    expect([await prepare(), writes, asked]).toEqual([true, [], []]);
    expect(controller.needs(proxy)).toBeUndefined();
  });

  test("stays as long as pods of another host use the copy", async () => {
    const theirs = pod({ name: "theirs", spec: { priorityClassName: "batch" } });
    const { writes, prepare, end } = await going({ classSelector: {}, others: [theirs] });
    await prepare();
    await end();
    expect(writes).toEqual(["create priorityclasses batch"]);
  });
});
