import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import { CLAIM_STATUS_ANNOTATION, INTERNAL_ANNOTATIONS, RESTRICTED_ANNOTATION } from "../../../src/api/keys.ts";
import { loadManifests } from "../../../src/cli/shared/manifests.ts";
import { toOverflow } from "../../../src/pods/overflow.ts";
import { toProxy } from "../../../src/pods/proxy.ts";
import { dropLeftovers } from "../../../webhook/drop-leftovers.ts";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import { inTurn, type Verdict } from "../../../webhook/responses.ts";
import { mutateObject } from "../../../webhook/whole-objects.ts";
import { type PodParts, pod, proxyPod } from "../../support/builders/pod.ts";
import { MANIFESTS } from "../../support/harness/installed.ts";
import { apply, type ReviewParts, request, withoutEmpty } from "./reviews.ts";

const WHOLE = { "legation.dev/whole": "true" };
const MARKS = { labels: { ...WHOLE }, finalizers: ["legation.dev/whole"] };
const DECISION = { "legation.dev/cluster": "west", "legation.dev/delegate-uid": "u", "legation.dev/member-node": "n" };
const COST_KEY = "controller.kubernetes.io/pod-deletion-cost";
const COST = { [COST_KEY]: "-3", "legation.dev/deletion-cost": "-3" };
const DROPPED = [...INTERNAL_ANNOTATIONS].filter((key) => key !== RESTRICTED_ANNOTATION);
const KEYS = [...DROPPED, CLAIM_STATUS_ANNOTATION];
const FORGED = Object.fromEntries(KEYS.map((key) => [key, "forged"]));

const widgets: DelegatedType = {
  metadata: { name: "widgets.example.com" },
  spec: {
    group: "example.com",
    version: "v1",
    kind: "Widget",
    plural: "widgets",
    exclusive: true,
    managedBy: "/spec/run/managedBy",
  },
};
const services: DelegatedType = {
  metadata: { name: "services" },
  spec: { version: "v1", kind: "Service", plural: "services" },
};
const find = (group: string, kind: string): DelegatedType | "none" =>
  [widgets, services].find(({ spec }) => (spec.group ?? "") === group && spec.kind === kind) ?? "none";

function verdictOn(parts: ReviewParts, isOptedIn = true): Verdict {
  return dropLeftovers(request(parts), isOptedIn, find);
}

/** Returns the object after admission has dropped leftovers, without maps and lists that are empty now. */
function cleaned(parts: ReviewParts, isOptedIn = true): unknown {
  return withoutEmpty(apply(parts.object, verdictOn(parts, isOptedIn)));
}

function placed({ metadata, spec }: PodParts = {}): PodParts {
  return proxyPod({
    metadata: { ...metadata, annotations: { ...DECISION, ...COST, ...metadata?.annotations } },
    spec: { nodeName: "legation-west", ...spec },
  });
}

describe("a pod that is created with the marks of another one", () => {
  const own = { labels: { app: "web" }, annotations: { note: "kept", "legation.dev/clusters": "east" } };

  test.each<[string, PodParts, PodParts]>([
    ["keeps what its author wrote, and nothing else", placed({ metadata: own }), { metadata: own }],
    [
      "gets the scheduler back that its author named",
      placed({ metadata: { annotations: { "legation.dev/scheduler-name": "volcano" } } }),
      { spec: { schedulerName: "volcano" } },
    ],
    [
      "keeps a deletion cost of its author's",
      { metadata: { annotations: { ...COST, "legation.dev/deletion-cost": "1" } } },
      { metadata: { annotations: { [COST_KEY]: "-3" } } },
    ],
    ["loses the label of overflow mode", toOverflow(pod()), {}],
    ["loses every annotation that only Legation writes", { metadata: { annotations: FORGED } }, {}],
    ["keeps a node of this cluster", { spec: { nodeName: "node-1" } }, { spec: { nodeName: "node-1" } }],
    [
      "keeps the finalizers of others",
      { metadata: { finalizers: ["x.io/y", "legation.dev/delegate"] } },
      { metadata: { finalizers: ["x.io/y"] } },
    ],
  ])("%s", (_, written, expected) => {
    expect(cleaned({ object: pod(written) })).toEqual(pod(expected));
  });

  test("keeps the label that a selector may name if a controller owns it, which would replace it for ever", () => {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "u", controller: true }];
    const object = pod(proxyPod({ metadata: { ownerReferences } }));
    const labels = { "legation.dev/proxy": "true" };
    expect(cleaned({ object })).toEqual(pod({ metadata: { ownerReferences, labels } }));
  });

  test.each(["all", "annotated"] as const)("is delegated in mode %s as if it had none", (mode) => {
    const asks = { annotations: { "legation.dev/delegate": "true" } };
    const object = pod(placed({ metadata: asks }));
    const verdict = inTurn(request({ object }), verdictOn({ object }), (one) => mutatePod(one, mode));
    const { metadata, spec } = toProxy(pod({ metadata: asks }));
    expect(apply(object, verdict)).toMatchObject({ metadata, spec });
    expect(apply(object, verdict).metadata.annotations).toEqual(asks.annotations);
  });

  test("is told all names, in warnings that the API server does not truncate", () => {
    const { warnings } = notDenied(verdictOn({ object: pod(placed({ metadata: { annotations: FORGED } })) }));
    const names = [...DROPPED, "legation.dev/proxy", "legation.dev/delegate", "schedulerName", "nodeName"];
    for (const name of names) expect(warnings.join()).toContain(name);
    for (const warning of warnings) expect(warning.length).toBeLessThanOrEqual(256);
  });

  test("is left to another host, or to the kubelet that runs it", () => {
    for (const mark of [
      { labels: { "legation.dev/host": "other" } },
      { annotations: { ...FORGED, "kubernetes.io/config.mirror": "x" } },
    ]) {
      const object = pod(placed({ metadata: mark }));
      expect(verdictOn({ object })).toEqual({ kind: "allowed", warnings: [] });
    }
  });

  test("loses nothing more in a second review, and nothing that is not Legation's", () => {
    const key = fc.constantFrom("app", COST_KEY, "legation.dev/clusters", "legation.dev/proxy", ...KEYS);
    const map = fc.dictionary(key, fc.string());
    const finalizers = fc.array(fc.constantFrom("x.io/y", "legation.dev/delegate"));
    const name = fc.constantFrom("legation", "default-scheduler", "legation-west", "node-1");
    const parts = fc.record(
      {
        metadata: fc.record({ labels: map, annotations: map, finalizers }, { requiredKeys: [] }),
        spec: fc.record({ schedulerName: name, nodeName: name }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(parts, (written) => {
        const object = pod(written);
        const after = apply(object, verdictOn({ object }));
        expect(verdictOn({ object: after })).toEqual({ kind: "allowed", warnings: [] });
        expect(after.metadata.labels?.app).toBe(object.metadata.labels?.app);
        expect(after.metadata.annotations?.["legation.dev/clusters"]).toBe(
          object.metadata.annotations?.["legation.dev/clusters"],
        );
        expect(after.metadata.finalizers?.filter((one) => one === "x.io/y")).toEqual(
          object.metadata.finalizers?.filter((one) => one === "x.io/y"),
        );
      }),
    );
  });
});

describe("an object that is created with marks of Legation", () => {
  const job = (metadata: object, spec: object = { managedBy: "legation.dev/whole" }): ReviewParts => ({
    group: "batch",
    kind: "Job",
    object: { metadata: { name: "sum", ...metadata }, spec },
  });
  const widget = (metadata: object, spec: object): ReviewParts => ({
    group: "example.com",
    kind: "Widget",
    object: { metadata: { name: "one", ...metadata }, spec },
  });
  const claim = (metadata: object): ReviewParts => ({
    kind: "PersistentVolumeClaim",
    object: { metadata: { name: "data", ...metadata } },
  });
  const cronJob = (metadata: object, spec: object): ReviewParts => ({
    group: "batch",
    kind: "CronJob",
    object: { metadata: { name: "nightly" }, spec: { jobTemplate: { metadata, spec } } },
  });
  const service = (metadata: object, spec: object): ReviewParts => ({
    kind: "Service",
    object: { metadata: { name: "web", ...metadata }, spec },
  });
  const managed = { run: { managedBy: "legation.dev/whole" } };
  const balanced = { type: "LoadBalancer", loadBalancerClass: "legation.dev/whole" };
  const record = { "legation.dev/cluster": "west,east", "legation.dev/shares": "{}" };

  test.each<[string, boolean, ReviewParts, ReviewParts]>([
    [
      "a whole Job: the members on record alone, where members may have it",
      true,
      job({ ...MARKS, annotations: { ...WHOLE, ...record } }),
      job({ ...MARKS, annotations: WHOLE }),
    ],
    [
      "a whole Job: all marks, where no member may have it",
      false,
      job({ ...MARKS, annotations: { ...WHOLE, ...record } }),
      job({ annotations: WHOLE }, {}),
    ],
    [
      "a whole Job: all marks, when its author took the annotation off",
      true,
      job({ ...MARKS, annotations: record }),
      job({}, {}),
    ],
    [
      "a Job of another manager: not its manager",
      false,
      job({}, { managedBy: "x.io/y" }),
      job({}, { managedBy: "x.io/y" }),
    ],
    [
      "a CronJob: the marks of its Jobs, where no member may have them",
      false,
      cronJob({ annotations: WHOLE, labels: { ...WHOLE } }, { managedBy: "legation.dev/whole" }),
      cronJob({ annotations: WHOLE }, {}),
    ],
    [
      "a CronJob: nothing, where its Jobs go to members",
      true,
      cronJob({ annotations: WHOLE, labels: { ...WHOLE } }, { managedBy: "legation.dev/whole" }),
      cronJob({ annotations: WHOLE, labels: { ...WHOLE } }, { managedBy: "legation.dev/whole" }),
    ],
    [
      "an exclusive object: its member and the copies on record",
      true,
      widget(
        { ...MARKS, annotations: { ...WHOLE, "legation.dev/cluster": "west", "legation.dev/members": "[]" } },
        managed,
      ),
      widget({ ...MARKS, annotations: WHOLE }, managed),
    ],
    [
      "an exclusive object: all marks, where no member may have it",
      false,
      widget({ ...MARKS, annotations: { ...WHOLE, "legation.dev/cluster": "west" } }, managed),
      widget({ annotations: WHOLE }, { run: {} }),
    ],
    [
      "a Service: the class that keeps load balancers away, where no member may have it",
      false,
      service({ ...MARKS, annotations: WHOLE }, balanced),
      service({ annotations: WHOLE }, { type: "LoadBalancer" }),
    ],
    [
      "a claim: the member that has the data of another one",
      true,
      claim({ annotations: { "legation.dev/cluster": "west", "legation.dev/claim-status": "{}", note: "kept" } }),
      claim({ annotations: { note: "kept" } }),
    ],
    [
      "a copy that another host gave to this cluster: nothing",
      false,
      claim({ labels: { ...WHOLE, "legation.dev/host": "other" }, annotations: { "legation.dev/owner": "{}" } }),
      claim({ labels: { ...WHOLE, "legation.dev/host": "other" }, annotations: { "legation.dev/owner": "{}" } }),
    ],
  ])("loses, on %s", (_, isOptedIn, written, expected) => {
    expect(cleaned(written, isOptedIn)).toEqual(expected.object);
  });

  test("is given to members as if it had none", () => {
    const written = widget({ ...MARKS, annotations: { ...WHOLE, "legation.dev/owner": "{}" } }, managed);
    const verdict = inTurn(request(written), verdictOn(written), (one) => mutateObject(one, find));
    expect(apply(written.object, verdict)).toEqual(widget({ ...MARKS, annotations: WHOLE }, managed).object);
  });

  test("keeps them on an update, which the policies judge", () => {
    const object = pod(placed());
    expect(verdictOn({ operation: "UPDATE", object, oldObject: object })).toEqual({ kind: "allowed", warnings: [] });
  });
});

describe("a workload that was made from pods of Legation", () => {
  const template = (parts: PodParts) => {
    const { metadata, spec } = pod(parts);
    return { metadata: { annotations: metadata.annotations ?? {} }, spec };
  };
  const workload = (annotations: object, parts: PodParts) => ({
    metadata: { name: "web", annotations },
    spec: { template: template(parts) },
  });
  const asks = { "legation.dev/delegate": "true" };

  test.each(["CREATE", "UPDATE"] as const)("loses their marks by a %s, and its author is told where", (operation) => {
    const object = workload(
      { ...asks, "legation.dev/cluster": "west" },
      { metadata: { annotations: DECISION }, spec: { nodeName: "legation-west", schedulerName: "legation" } },
    );
    const oldObject = operation === "UPDATE" ? object : null;
    const verdict = mutateWorkload(request({ kind: "Deployment", operation, object, oldObject }), "annotated");
    // A change of the scheduler would replace the pods of a workload that is there, and each pod gets its own.
    const spec = { schedulerName: "legation" };
    expect(apply(object, verdict)).toEqual(workload(asks, { metadata: { annotations: asks }, spec }));
    expect(notDenied(verdict).warnings).toEqual([
      "metadata: annotation legation.dev/cluster: dropped, as left over from another object; legation.dev/clusters names members",
      expect.stringMatching(/^spec.template: annotation .*delegate-uid.*, spec.nodeName: dropped/),
    ]);
  });

  test("keeps the members of a whole Job that is there", () => {
    const annotations = { ...WHOLE, "legation.dev/cluster": "west", "legation.dev/shares": "{}" };
    const object = { ...workload(annotations, {}), spec: { template: template({}), managedBy: "legation.dev/whole" } };
    const verdict = mutateWorkload(
      request({ group: "batch", kind: "Job", operation: "UPDATE", object, oldObject: object }),
      "all",
    );
    expect(apply(object, verdict).metadata.annotations).toEqual(annotations);
  });
});

test("webhook entries match every annotation that is dropped, before all other entries, and once", async () => {
  const entry = z.object({
    name: z.string(),
    reinvocationPolicy: z.string().optional(),
    matchConditions: z.array(z.object({ expression: z.string() })).default([]),
  });
  const configuration = z.object({ metadata: z.object({ name: z.literal("legation") }), webhooks: z.array(entry) });
  const [found] = (await loadManifests(MANIFESTS)).flatMap((one) => configuration.safeParse(one).data ?? []);
  const first = found?.webhooks.slice(0, 2) ?? [];
  expect(first.map(({ name }) => name)).toEqual(["leftovers.legation.dev", "leftovers-elsewhere.legation.dev"]);
  for (const { reinvocationPolicy, matchConditions } of first) {
    expect(reinvocationPolicy).toBe("Never");
    const [list = ""] = /\["legation.dev\/cluster".*?\]/s.exec(matchConditions[0]?.expression ?? "") ?? [];
    expect(z.array(z.string()).parse(JSON.parse(list)).sort()).toEqual(KEYS.sort());
  }
});

function notDenied(verdict: Verdict): Exclude<Verdict, { readonly kind: "denied" }> {
  if (verdict.kind === "denied") throw new Error(verdict.message);
  return verdict;
}
