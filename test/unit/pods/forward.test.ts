import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION, HOST_LABEL } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { forwardPatch } from "../../../src/pods/forward.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

const before = proxyPod({ metadata: { labels: { app: "web", tier: "gold" }, annotations: { note: "one" } } });
const made = toDelegate(before, { id: "host-id", name: "cern" }).metadata ?? {};

function delegate(added: { labels?: Record<string, string>; annotations?: Record<string, string> } = {}): Stored<Pod> {
  return pod({
    uid: "delegate-uid",
    metadata: {
      labels: { ...made.labels, ...added.labels },
      annotations: { ...made.annotations, ...added.annotations },
    },
  });
}

describe("labels and annotations go from the proxy to the delegate", () => {
  test("nothing is written when nothing changed", () => {
    expect(forwardPatch(before, delegate())).toBeUndefined();
  });

  test("added, changed and removed keys follow, and the record of keys with them", () => {
    const proxy = proxyPod({
      metadata: { labels: { app: "web2" }, annotations: { note: "one", "tekton.dev/ready": "" } },
    });
    expect(forwardPatch(proxy, delegate())).toEqual({
      metadata: {
        uid: "delegate-uid",
        labels: { app: "web2", tier: null },
        annotations: {
          "tekton.dev/ready": "",
          [FORWARDED_ANNOTATION]: '{"labels":["app"],"annotations":["note","tekton.dev/ready"]}',
        },
      },
    });
  });

  test("keys that the member set are never touched", () => {
    const theirs = { labels: { "topology.kubernetes.io/zone": "a" }, annotations: { "cni.example/ip": "10.1.0.7" } };
    expect(forwardPatch(before, delegate(theirs))).toBeUndefined();
  });

  test("a key that the member changed is the proxy's again", () => {
    expect(forwardPatch(before, delegate({ labels: { app: "other" } }))?.metadata.labels).toEqual({ app: "web" });
  });

  test.each(["", "{", "null", '{"labels":"all"}', '{"labels":[1,null]}'])(
    "an unreadable record of keys (%j) removes nothing",
    (record) => {
      const proxy = proxyPod({ metadata: { labels: {}, annotations: {} } });
      expect(forwardPatch(proxy, delegate({ annotations: { [FORWARDED_ANNOTATION]: record } }))).toBeUndefined();
    },
  );

  test("a record that names Legation's own keys does not make them go", () => {
    const record = JSON.stringify({ labels: [HOST_LABEL], annotations: ["legation.dev/owner"] });
    const forged = delegate({ annotations: { [FORWARDED_ANNOTATION]: record } });
    expect(forwardPatch(before, forged)).toBeUndefined();
  });
});
