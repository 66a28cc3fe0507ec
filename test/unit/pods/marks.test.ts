import { describe, expect, test } from "vitest";
import {
  CLUSTER_ANNOTATION,
  DELEGATE_FINALIZER,
  DELETION_COST_ANNOTATION,
  FAILOVER_ANNOTATION,
  FAILOVER_NEVER,
  OWN_DELETION_COST_ANNOTATION,
  PROXY_LABEL,
  PROXY_LABEL_VALUE,
  SCHEDULER_NAME,
  SCHEDULER_NAME_ANNOTATION,
} from "../../../src/api/keys.ts";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { withEndlessTolerations } from "../../../src/pods/failover.ts";
import { withKeysOf, withMarksOf } from "../../../src/pods/marks.ts";

const spec = { containers: [], schedulerName: SCHEDULER_NAME };
const old: Pod = {
  metadata: {
    labels: { [PROXY_LABEL]: PROXY_LABEL_VALUE, app: "web" },
    annotations: { [CLUSTER_ANNOTATION]: "west", note: "author's" },
    finalizers: [DELEGATE_FINALIZER, "example.com/other"],
  },
  spec,
};

describe("marks that an update leaves out", () => {
  test("come back, and nothing else does", () => {
    expect(withMarksOf(old, { metadata: { finalizers: ["example.com/new"] }, spec })).toEqual({
      metadata: {
        labels: { [PROXY_LABEL]: PROXY_LABEL_VALUE },
        annotations: { [CLUSTER_ANNOTATION]: "west" },
        finalizers: ["example.com/new", DELEGATE_FINALIZER],
      },
      spec,
    });
  });

  test("are none of a pod that has all of them, or had none", () => {
    expect(withMarksOf(old, old)).toEqual(old);
    expect(withMarksOf({ metadata: {} }, { metadata: { labels: { app: "web" } } })).toEqual({
      metadata: { labels: { app: "web" } },
    });
  });

  test("keep another value, which a policy refuses", () => {
    const pod = { metadata: { ...old.metadata, annotations: { [CLUSTER_ANNOTATION]: "east" } }, spec };
    expect(withMarksOf(old, pod)).toEqual(pod);
  });

  test.each([
    ["Legation's own", "-10", "-10", "-10"],
    ["not the author's", "5", "-10", undefined],
  ])("include a deletion cost that is %s", (_, cost, own, kept) => {
    const annotations = { [DELETION_COST_ANNOTATION]: cost, [OWN_DELETION_COST_ANNOTATION]: own };
    const { metadata } = withMarksOf({ metadata: { annotations } }, { metadata: {} });
    expect(metadata?.annotations?.[DELETION_COST_ANNOTATION]).toBe(kept);
  });

  test.each([
    ["the default one", {}, "default-scheduler", SCHEDULER_NAME],
    ["the author's own", { [SCHEDULER_NAME_ANNOTATION]: "volcano" }, "volcano", SCHEDULER_NAME],
    ["any other", {}, "volcano", "volcano"],
  ])("put Legation's scheduler in place of %s", (_, annotations, written, kept) => {
    const pod = withMarksOf({ metadata: { annotations }, spec }, { spec: { containers: [], schedulerName: written } });
    expect(pod.spec?.schedulerName).toBe(kept);
  });

  test("include the endless tolerations of failover: never", () => {
    const endless = withEndlessTolerations({
      metadata: { annotations: { [FAILOVER_ANNOTATION]: FAILOVER_NEVER } },
      spec,
    });
    const { tolerations } = withMarksOf(endless, { spec }).spec ?? {};
    expect(tolerations).toEqual(endless.spec?.tolerations);
  });
});

test("only lost keys of the named ones come back", () => {
  expect(withKeysOf({ a: "1", b: "2", c: "3" }, { a: "9" }, ["a", "b"])).toEqual({ a: "9", b: "2" });
  expect(withKeysOf(undefined, undefined, ["a"])).toBeUndefined();
});
