import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod, PodCondition, Stored } from "../../../src/api/kubernetes.ts";
import { statusFrom } from "../../../src/pods/feedback.ts";
import { forwardPatches } from "../../../src/pods/forward.ts";
import { conditionOf } from "../../../src/pods/pod-state.ts";
import { endedStatus, pod, proxyPod, runningStatus } from "../../support/builders/pod.ts";

const TYPE = "example.com/checked";
const checked = (status: string, parts: Partial<PodCondition> = {}): PodCondition => ({ type: TYPE, status, ...parts });

/** A proxy and its delegate, and what Legation writes on either until nothing is left to write. */
class Pair {
  proxy: Stored<Pod>;
  delegate: Stored<Pod>;
  writes = 0;

  constructor(record: object = { labels: [], annotations: [], conditions: [] }) {
    this.proxy = proxyPod({ status: runningStatus() });
    const annotations = { [FORWARDED_ANNOTATION]: JSON.stringify(record) };
    this.delegate = pod({ uid: "delegate-uid", metadata: { annotations }, status: runningStatus() });
    this.settle();
    this.writes = 0;
  }

  host(condition?: PodCondition): this {
    this.proxy = withCondition(this.proxy, condition);
    return this;
  }

  member(condition?: PodCondition): this {
    this.delegate = withCondition(this.delegate, condition);
    return this;
  }

  /** Conditions of both sides afterwards. */
  settle(): (string | undefined)[] {
    for (let round = 0; round < 5; round += 1) {
      this.show();
      if (!this.record()) return [this.proxy, this.delegate].map((one) => conditionOf(one, TYPE)?.status);
    }
    throw new Error("it never comes to rest");
  }

  show(): void {
    this.proxy = { ...this.proxy, status: statusFrom(this.proxy, this.delegate) ?? {} };
  }

  record(): boolean {
    const annotations = forwardPatches(this.proxy, this.delegate).at(-1)?.body.metadata.annotations;
    if (annotations === undefined) return false;
    this.writes += 1;
    const { metadata } = this.delegate;
    this.delegate = {
      ...this.delegate,
      metadata: { ...metadata, annotations: { ...metadata.annotations, ...(annotations as Record<string, string>) } },
    };
    return true;
  }
}

function withCondition(of: Stored<Pod>, condition?: PodCondition): Stored<Pod> {
  const others = (of.status?.conditions ?? []).filter(({ type }) => type !== TYPE);
  return { ...of, status: { ...of.status, conditions: condition === undefined ? others : [...others, condition] } };
}

describe("a condition of other controllers", () => {
  test("set by the host on a terminal pod stays, though the member once had one", () => {
    const pair = new Pair().member(checked("True"));
    pair.settle();
    pair.member();
    pair.delegate = { ...pair.delegate, status: { ...pair.delegate.status, ...endedStatus(0) } };
    // The end removes what the member withdrew.
    pair.show();
    expect(conditionOf(pair.proxy, TYPE)).toBeUndefined();
    pair.host(checked("False")).show();
    expect(conditionOf(pair.proxy, TYPE)?.status).toBe("False");
  });

  test("set on the host stays, whatever the member has", () => {
    const pair = new Pair().host(checked("False"));
    expect(pair.member(checked("True")).settle()).toEqual(["False", "True"]);
    expect(pair.member(checked("Unknown")).settle()).toEqual(["False", "Unknown"]);
    expect(pair.member().settle()).toEqual(["False", undefined]);
    expect(pair.writes).toBe(0);
  });

  test("set in the member is shown on the host, follows, and is removed again", () => {
    const pair = new Pair();
    expect(pair.member(checked("True")).settle()).toEqual(["True", "True"]);
    expect(pair.writes).toBe(1);
    expect(pair.member(checked("False")).settle()).toEqual(["False", "False"]);
    expect(pair.host(checked("True")).settle()).toEqual(["False", "False"]);
    expect(pair.writes).toBe(1);
    expect(pair.member().settle()).toEqual([undefined, undefined]);
    expect(pair.writes).toBe(2);
    // Either side may set it next.
    expect(pair.host(checked("True")).settle()).toEqual(["True", undefined]);
  });

  test("is not shown before the record names its owner", () => {
    const pair = new Pair().member(checked("True"));
    pair.show();
    expect(conditionOf(pair.proxy, TYPE)).toBeUndefined();
    pair.record();
    pair.member(checked("False")).show();
    expect(conditionOf(pair.proxy, TYPE)).toEqual(checked("False"));
  });

  test("is shown with its delegate's end", () => {
    const proxy = proxyPod({ status: runningStatus() });
    const ended = withCondition(pod({ uid: "delegate-uid", status: endedStatus(0) }), checked("True"));
    expect(statusFrom(proxy, ended)?.conditions).toContainEqual(checked("True"));
    expect(statusFrom(withCondition(proxy, checked("False")), ended)?.conditions).toContainEqual(checked("False"));
    const running = withCondition(pod({ uid: "delegate-uid", status: runningStatus() }), checked("True"));
    expect(statusFrom(proxy, running, { gone: true })?.conditions).toContainEqual(checked("True"));
  });

  test("shown by an earlier version follows its delegate", () => {
    const earlier = (): Pair => new Pair({ labels: [], annotations: [] });
    expect(earlier().settle()).toEqual([undefined, undefined]);
    // The condition changed while the controller was replaced.
    const pair = earlier().host(checked("True")).member(checked("False"));
    expect(pair.settle()).toEqual(["False", "False"]);
    expect(pair.writes).toBe(1);
    expect(pair.member().settle()).toEqual([undefined, undefined]);
    // From then on it belongs to the first side.
    expect(pair.host(checked("True")).member(checked("False")).settle()).toEqual(["True", "False"]);

    const ended = earlier().host(checked("True")).member(checked("False"));
    ended.delegate = { ...ended.delegate, status: { ...ended.delegate.status, phase: "Succeeded" } };
    ended.show();
    expect(conditionOf(ended.proxy, TYPE)).toEqual(checked("False"));
  });

  test("stays the host's at no cost if an earlier version copied none", () => {
    const pair = new Pair({ labels: [], annotations: [] }).host(checked("True"));
    expect(pair.settle()).toEqual(["True", undefined]);
    expect(pair.writes).toBe(0);
  });

  test("stays the host's if the delegate's record is missing", () => {
    const pair = new Pair().host(checked("True")).member(checked("False"));
    pair.delegate = { ...pair.delegate, metadata: { ...pair.delegate.metadata, annotations: {} } };
    expect(pair.settle()).toEqual(["True", "False"]);
  });

  test("follows among the first hundred of the member, also at the end", () => {
    const pair = new Pair();
    const many = Array.from({ length: 150 }, (_, index) => ({ type: `example.com/${index}`, status: "True" }));
    pair.delegate = { ...pair.delegate, status: { ...pair.delegate.status, conditions: many } };
    pair.settle();
    expect(pair.writes).toBe(1);
    const types = (): string[] => (pair.proxy.status?.conditions ?? []).map(({ type }) => type);
    const followed = many.slice(0, 100).map(({ type }) => type);
    expect(types()).toEqual(["Ready", ...followed]);
    pair.delegate = { ...pair.delegate, status: { ...pair.delegate.status, phase: "Succeeded" } };
    pair.settle();
    expect(types()).toEqual(["Ready", ...followed]);
  });

  test("costs no write if it is a kubelet's", () => {
    const pair = new Pair();
    const conditions = [{ type: "PodReadyToStartContainers", status: "True" }];
    pair.delegate = { ...pair.delegate, status: { ...pair.delegate.status, conditions } };
    pair.settle();
    expect(pair.writes).toBe(0);
    expect(pair.proxy.status?.conditions).toContainEqual(conditions[0]);
  });
});
