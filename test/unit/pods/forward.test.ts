import { describe, expect, test } from "vitest";
import { FORWARDED_ANNOTATION, HOST_LABEL } from "../../../src/api/keys.ts";
import type { Container, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { forwardPatches, specFollows } from "../../../src/pods/forward.ts";
import type { ForwardPatch } from "../../../src/pods/forward-record.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

const host = { id: "host-id", name: "cern" };
const before = proxyPod({ metadata: { labels: { app: "web", tier: "gold" }, annotations: { note: "one" } } });

interface Added {
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<PodSpec>;
}

/** The delegate that was made for a proxy, and what the member did to it. */
function delegate(added: Added = {}, proxy = before): Stored<Pod> {
  const { metadata = {}, spec } = toDelegate(proxy, host);
  return pod({
    uid: "delegate-uid",
    metadata: {
      labels: { ...metadata.labels, ...added.labels },
      annotations: { ...metadata.annotations, ...added.annotations },
    },
    spec: { ...spec, ...added.spec },
  });
}

/** The delegate after the patch that was sent last, as far as the record goes. */
function recordedBy(patches: readonly ForwardPatch[], current: Stored<Pod>): Stored<Pod> {
  const record = patches.at(-1)?.body.metadata.annotations?.[FORWARDED_ANNOTATION] ?? "";
  const { metadata } = current;
  return {
    ...current,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [FORWARDED_ANNOTATION]: record } },
  };
}

describe("forwarding of labels and annotations", () => {
  test("sends nothing if nothing changed", () => {
    expect(forwardPatches(before, delegate())).toEqual([]);
  });

  test("forwards added, changed and removed keys with their record", () => {
    const proxy = proxyPod({
      metadata: { labels: { app: "web2" }, annotations: { note: "one", "tekton.dev/ready": "" } },
    });
    expect(forwardPatches(proxy, delegate())).toEqual([
      {
        body: {
          metadata: {
            uid: "delegate-uid",
            labels: { app: "web2", tier: null },
            annotations: {
              "tekton.dev/ready": "",
              [FORWARDED_ANNOTATION]:
                '{"labels":["app"],"annotations":["note","tekton.dev/ready"],"conditions":[],"spec":{"image/main":"qiht01"}}',
            },
          },
        },
      },
    ]);
  });

  test("removes a removed key of any name", () => {
    const labelled = proxyPod({ metadata: { labels: { constructor: "acme" } } });
    const [patch] = forwardPatches(proxyPod(), delegate({}, labelled));
    expect(patch?.body.metadata.labels).toEqual({ constructor: null });
  });

  test("never touches keys that the member set", () => {
    const theirs = { labels: { "topology.kubernetes.io/zone": "a" }, annotations: { "cni.example/ip": "10.1.0.7" } };
    expect(forwardPatches(before, delegate(theirs))).toEqual([]);
  });

  test.each<[string, Record<string, string>]>([
    ["is another", { "openshift.io/scc": "nonroot-v2" }],
    ["is not there", {}],
  ])(
    "what a member's OpenShift admitted a pod by stays, on record or not, when on the host that %s",
    (_, annotations) => {
      const proxy = proxyPod({
        metadata: { labels: { app: "web", tier: "gold" }, annotations: { note: "one", ...annotations } },
      });
      const made = delegate({ annotations: { "openshift.io/scc": "restricted-v2" } }, proxy);
      expect(forwardPatches(proxy, made)).toEqual([]);
      const record = JSON.parse(made.metadata.annotations?.[FORWARDED_ANNOTATION] ?? "{}");
      const earlier = JSON.stringify({ ...record, annotations: ["note", "openshift.io/scc"] });
      const before = delegate(
        { annotations: { "openshift.io/scc": "restricted-v2", [FORWARDED_ANNOTATION]: earlier } },
        proxy,
      );
      expect(forwardPatches(proxy, before)).toEqual([]);
    },
  );

  test("restores a key that the member changed", () => {
    const [patch] = forwardPatches(before, delegate({ labels: { app: "other" } }));
    expect(patch?.body.metadata.labels).toEqual({ app: "web" });
  });

  test.each(["", "{", "null", '{"labels":"all"}', '{"labels":[1,null]}', '{"spec":7}'])(
    "an unreadable record (%j) removes nothing",
    (record) => {
      const proxy = proxyPod({ metadata: { labels: {}, annotations: {} } });
      expect(forwardPatches(proxy, delegate({ annotations: { [FORWARDED_ANNOTATION]: record } }))).toEqual([]);
    },
  );

  test("keeps Legation's own keys even if the record names them", () => {
    const record = JSON.stringify({ labels: [HOST_LABEL], annotations: ["legation.dev/owner"] });
    const forged = delegate({ annotations: { [FORWARDED_ANNOTATION]: record } });
    expect(forwardPatches(before, forged)).toEqual([]);
  });
});

const cpu = (requests: string, limits: string): NonNullable<Container["resources"]> => ({
  requests: { cpu: requests, memory: "64Mi" },
  limits: { cpu: limits, memory: "64Mi", "example.com/gpu": "1" },
});
const sidecar = { name: "sidecar", image: "sidecar:1", restartPolicy: "Always" };
const main: Container = { name: "main", image: "main:1", resources: cpu("100m", "200m") };
const helper: Container = { name: "helper", image: "helper:1" };
const spec = {
  containers: [main, helper],
  initContainers: [sidecar],
  activeDeadlineSeconds: 600,
  tolerations: [{ key: "example.com/a", operator: "Exists" }],
} satisfies PodSpec;
const original = proxyPod({ spec });
const notReady = {
  key: "node.kubernetes.io/not-ready",
  operator: "Exists",
  effect: "NoExecute",
  tolerationSeconds: 300,
} as const;

function changed(parts: Partial<PodSpec>): Stored<Pod> {
  return proxyPod({ spec: { ...spec, ...parts } });
}

const debuggers = [{ name: "debugger", image: "busybox", targetContainerName: "main" }];

describe("forwarding of the spec", () => {
  test.each<[string, Partial<PodSpec>, ForwardPatch["subresource"], object]>([
    [
      "an image, by the container's name",
      { containers: [main, { ...helper, image: "nop" }] },
      undefined,
      { containers: [{ name: "helper", image: "nop" }] },
    ],
    [
      "an init container's image",
      { initContainers: [{ ...sidecar, image: "nop" }] },
      undefined,
      { initContainers: [{ name: "sidecar", image: "nop" }] },
    ],
    ["an earlier deadline", { activeDeadlineSeconds: 5 }, undefined, { activeDeadlineSeconds: 5 }],
    [
      "resources, by the resize subresource and amount by amount",
      { containers: [{ ...main, resources: cpu("150m", "200m") }, helper] },
      "resize",
      { containers: [{ name: "main", resources: { requests: { cpu: "150m" } } }] },
    ],
    [
      "ephemeral containers, by their subresource",
      { ephemeralContainers: debuggers },
      "ephemeralcontainers",
      { ephemeralContainers: debuggers },
    ],
    [
      "tolerations, without those that every cluster adds",
      { tolerations: [...spec.tolerations, notReady, { key: "example.com/b", operator: "Exists" }] },
      undefined,
      { tolerations: [...spec.tolerations, { key: "example.com/b", operator: "Exists" }] },
    ],
  ])("%s", (_, parts, subresource, patched) => {
    const proxy = changed(parts);
    const current = delegate({}, original);
    const patches = forwardPatches(proxy, current);
    expect(specFollows(original, current)).toBe(true);
    expect(specFollows(proxy, current)).toBe(false);
    const found = patches.find(({ body }) => body.spec !== undefined);
    expect(found?.subresource).toBe(subresource);
    expect(found?.body.spec).toEqual(patched);
    expect(found?.body.metadata.uid).toBe("delegate-uid");
    expect(patches.at(-1)?.subresource).toBeUndefined();
    // Sent once, taken by the member or not.
    expect(forwardPatches(proxy, recordedBy(patches, current))).toEqual([]);
  });

  test("forwards a deadline set later", () => {
    const first = proxyPod();
    const proxy = proxyPod({ spec: { activeDeadlineSeconds: 7 } });
    expect(forwardPatches(proxy, delegate({}, first))[0]?.body.spec).toEqual({ activeDeadlineSeconds: 7 });
  });

  test("forwards a toleration's seconds in its place among the member's", () => {
    const theirs = { key: "member.example.com/pool", operator: "Exists" };
    const toleration = { ...notReady, tolerationSeconds: 20 };
    const proxy = changed({ tolerations: [...spec.tolerations, toleration] });
    const current = delegate({ spec: { tolerations: [theirs, notReady, ...spec.tolerations] } }, original);
    expect(forwardPatches(proxy, current)[0]?.body.spec).toEqual({
      tolerations: [theirs, toleration, ...spec.tolerations],
    });
  });

  test("resizes pod-level resources", () => {
    const first = proxyPod({ spec: { resources: { requests: { cpu: "1" } } } });
    const proxy = proxyPod({ spec: { resources: { requests: { cpu: "2" } } } });
    const [opening, resize] = forwardPatches(proxy, delegate({}, first));
    // Until the resize is recorded, the delegate's resources must not count as the member's own.
    expect(opening?.body.metadata.annotations?.[FORWARDED_ANNOTATION]).toBe(
      '{"labels":[],"annotations":[],"conditions":[],"spec":{"image/main":"qiht01"}}',
    );
    expect(resize).toEqual({
      subresource: "resize",
      body: { metadata: { uid: "delegate-uid" }, spec: { resources: { requests: { cpu: "2" } } } },
    });
  });

  test("adds an ephemeral container without mounts the member has no volume for", () => {
    const volumeMounts = [
      { name: "kube-api-access-1", mountPath: "/token" },
      { name: "work", mountPath: "/work" },
    ];
    const proxy = changed({ ephemeralContainers: [{ name: "debugger", image: "busybox", volumeMounts }] });
    const current = delegate({ spec: { volumes: [{ name: "work", emptyDir: {} }] } }, original);
    expect(forwardPatches(proxy, current)[0]?.body.spec).toEqual({
      ephemeralContainers: [{ name: "debugger", image: "busybox", volumeMounts: [volumeMounts[1]] }],
    });
  });

  test("sends one request per subresource, and the record last", () => {
    const proxy = changed({
      containers: [{ ...main, image: "main:2", resources: cpu("150m", "200m") }, helper],
      ephemeralContainers: debuggers,
      activeDeadlineSeconds: 60,
    });
    const patches = forwardPatches(proxy, delegate({}, original));
    expect(patches.map(({ subresource }) => subresource)).toEqual([
      undefined,
      "resize",
      "ephemeralcontainers",
      undefined,
    ]);
    expect(patches.at(-1)?.body.spec).toEqual({
      containers: [{ name: "main", image: "main:2" }],
      activeDeadlineSeconds: 60,
    });
  });
});

describe("the member's own changes of the spec stay until the proxy's change", () => {
  const mirrored = { ...main, image: "mirror.example.com/main:1", resources: cpu("300m", "300m") };

  test("with an image, resources, a sidecar, tolerations and a deadline", () => {
    const theirs = {
      containers: [mirrored, helper, { name: "mesh", image: "mesh:1" }],
      tolerations: [{ key: "member.example.com/pool", operator: "Exists" }],
      activeDeadlineSeconds: 30,
    };
    expect(forwardPatches(original, delegate({ spec: theirs }, original))).toEqual([]);
  });

  test("while another container's image changes", () => {
    const proxy = changed({ containers: [main, { ...helper, image: "nop" }] });
    const current = delegate({ spec: { containers: [mirrored, helper] } }, original);
    expect(forwardPatches(proxy, current)[0]?.body.spec).toEqual({ containers: [{ name: "helper", image: "nop" }] });
  });

  test("with a later deadline and an ephemeral container of the same name", () => {
    const proxy = changed({ activeDeadlineSeconds: 60, ephemeralContainers: debuggers });
    const theirs = { activeDeadlineSeconds: 30, ephemeralContainers: [{ name: "debugger", image: "other" }] };
    expect(forwardPatches(proxy, delegate({ spec: theirs }, original))).toEqual([]);
  });
});
