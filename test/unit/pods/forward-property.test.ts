import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Container, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { toDelegate } from "../../../src/pods/delegate.ts";
import { forwardPatches, specFollows } from "../../../src/pods/forward.ts";
import type { ForwardPatch } from "../../../src/pods/forward-record.ts";
import { pod, proxyPod } from "../../support/builders/pod.ts";

const containers = z.array(
  z.object({
    name: z.string(),
    image: z.string().optional(),
    resources: z.object({ requests: z.record(z.string(), z.string()) }).optional(),
  }),
);
const specPatch = z.object({
  containers: containers.optional(),
  activeDeadlineSeconds: z.number().optional(),
  tolerations: z.array(z.object({ key: z.string(), operator: z.string() })).optional(),
  ephemeralContainers: z.array(z.object({ name: z.string(), image: z.string() })).optional(),
});

/** Applies a strategic merge patch to a pod, as far as forwarding needs it. */
function applied(current: Stored<Pod>, { body }: ForwardPatch): Stored<Pod> {
  const merged = (map: Record<string, string> = {}, changes: Readonly<Record<string, string | null>> = {}) =>
    Object.fromEntries(
      Object.entries({ ...map, ...changes }).flatMap(([key, value]): [string, string][] =>
        value === null ? [] : [[key, value]],
      ),
    );
  const { containers: changed = [], ephemeralContainers = [], ...rest } = specPatch.parse(body.spec ?? {});
  const {
    containers: old = [],
    ephemeralContainers: debuggers = [],
    ...spec
  }: PodSpec = current.spec ?? {
    containers: [],
  };
  const next = old.map((container): Container => {
    const change = changed.find(({ name }) => name === container.name);
    const requests = { ...container.resources?.requests, ...change?.resources?.requests };
    return { ...container, ...(change?.image === undefined ? {} : { image: change.image }), resources: { requests } };
  });
  const { activeDeadlineSeconds, tolerations } = rest;
  return {
    ...current,
    metadata: {
      ...current.metadata,
      labels: merged(current.metadata.labels, body.metadata.labels),
      annotations: merged(current.metadata.annotations, body.metadata.annotations),
    },
    spec: {
      ...spec,
      ...(activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds }),
      ...(tolerations === undefined ? {} : { tolerations }),
      containers: next,
      ephemeralContainers: [...debuggers, ...ephemeralContainers],
    },
  };
}

const change = fc.record(
  {
    image: fc.constantFrom("a", "b", "c"),
    cpu: fc.constantFrom("1", "2"),
    label: fc.constantFrom("x", "y"),
    toleration: fc.constantFrom("k", "l"),
    debugger: fc.constantFrom("d1", "d2"),
    shorter: fc.boolean(),
    /** The number of requests before the controller is killed. */
    sent: fc.nat(3),
  },
  { requiredKeys: ["sent"] },
);

interface Written {
  image: string;
  cpu: string;
  label?: string;
  readonly tolerations: Set<string>;
  readonly debuggers: Set<string>;
  deadline: number;
}

function proxyOf({ image, cpu, label, tolerations, debuggers, deadline }: Written): Stored<Pod> {
  return proxyPod({
    metadata: { labels: label === undefined ? {} : { label } },
    spec: {
      containers: [{ name: "main", image, resources: { requests: { cpu } } }],
      activeDeadlineSeconds: deadline,
      tolerations: [...tolerations].map((key) => ({ key, operator: "Exists" })),
      ephemeralContainers: [...debuggers].map((name) => ({ name, image: "tool" })),
    },
  });
}

test("makes the delegate follow after a controller was killed behind any request", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 6 }), (changes) => {
      const written: Written = { image: "a", cpu: "1", tolerations: new Set(), debuggers: new Set(), deadline: 100 };
      const made = toDelegate(proxyOf(written), { id: "host-id", name: "cern" });
      let delegate = pod({ uid: "delegate-uid", metadata: made.metadata ?? {}, spec: made.spec ?? {} });
      for (const { image, cpu, label, toleration, debugger: tool, shorter, sent } of changes) {
        if (image !== undefined) written.image = image;
        if (cpu !== undefined) written.cpu = cpu;
        if (label !== undefined) written.label = label;
        if (toleration !== undefined) written.tolerations.add(toleration);
        if (tool !== undefined) written.debuggers.add(tool);
        if (shorter === true) written.deadline -= 1;
        for (const patch of forwardPatches(proxyOf(written), delegate).slice(0, sent))
          delegate = applied(delegate, patch);
      }
      const proxy = proxyOf(written);
      for (const patch of forwardPatches(proxy, delegate)) delegate = applied(delegate, patch);
      expect(forwardPatches(proxy, delegate)).toEqual([]);
      expect(specFollows(proxy, delegate)).toBe(true);
      expect(delegate.metadata.labels?.label).toBe(written.label);
      const { spec } = delegate;
      expect(spec?.containers[0]).toEqual(proxy.spec?.containers[0]);
      expect(spec?.activeDeadlineSeconds).toBe(written.deadline);
      expect(new Set(spec?.tolerations?.map(({ key }) => key))).toEqual(written.tolerations);
      expect(spec?.ephemeralContainers ?? []).toEqual(proxy.spec?.ephemeralContainers);
    }),
    { numRuns: 500 },
  );
});
