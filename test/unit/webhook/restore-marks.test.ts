import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { DELETION_COST_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod } from "../../../src/api/kubernetes.ts";
import { loadManifests } from "../../../src/cli/shared/manifests.ts";
import { withEndlessTolerations } from "../../../src/pods/failover.ts";
import { KEPT_ANNOTATIONS } from "../../../src/pods/marks.ts";
import { toOverflow } from "../../../src/pods/overflow.ts";
import { restoreMarks } from "../../../webhook/restore-marks.ts";
import { type PodParts, pod, proxyPod } from "../../support/builders/pod.ts";
import { MANIFESTS } from "../../support/harness/installed.ts";
import { apply, request } from "./reviews.ts";

const DECISION = {
  "legation.dev/cluster": "west",
  "legation.dev/delegate-uid": "u",
  "legation.dev/member-node": "n",
};
const COST = { [DELETION_COST_ANNOTATION]: "-3", "legation.dev/deletion-cost": "-3" };

function updated<T extends object>(oldObject: object, object: T, kind = "Pod"): T {
  return apply(object, restoreMarks(request({ kind, operation: "UPDATE", object, oldObject })));
}

const placed = proxyPod({ metadata: { annotations: { ...DECISION, ...COST, note: "kept" }, labels: { app: "web" } } });
const ofVolcano = proxyPod({ metadata: { annotations: { "legation.dev/scheduler-name": "volcano" } } });

describe("an update of a proxy", () => {
  test.each<[string, Pod, PodParts, PodParts]>([
    [
      "without labels, annotations and finalizers gets back the marks and nothing else",
      placed,
      { spec: { schedulerName: "legation" } },
      proxyPod({ metadata: { annotations: { ...DECISION, ...COST } } }),
    ],
    [
      "with others keeps these",
      placed,
      {
        metadata: { labels: { app: "other" }, annotations: { note: "new" }, finalizers: ["x.io/y"] },
        spec: { schedulerName: "legation" },
      },
      proxyPod({
        metadata: {
          labels: { app: "other" },
          annotations: { note: "new", ...DECISION, ...COST },
          finalizers: ["x.io/y", "legation.dev/delegate"],
        },
      }),
    ],
    [
      "with another deletion cost keeps that",
      placed,
      { ...placed, metadata: { ...placed.metadata, annotations: { ...DECISION, [DELETION_COST_ANNOTATION]: "7" } } },
      {
        ...placed,
        metadata: {
          ...placed.metadata,
          annotations: { ...DECISION, [DELETION_COST_ANNOTATION]: "7", "legation.dev/deletion-cost": "-3" },
        },
      },
    ],
    [
      "with the scheduler that its author named is a proxy still",
      ofVolcano,
      { spec: { schedulerName: "volcano" } },
      ofVolcano,
    ],
    [
      "with the scheduler that defaulting names is a proxy still",
      proxyPod(),
      { spec: { schedulerName: "default-scheduler" } },
      proxyPod(),
    ],
    [
      "with another scheduler than its author's is left for the API server to refuse",
      ofVolcano,
      { metadata: ofVolcano.metadata, spec: { schedulerName: "default-scheduler" } },
      { metadata: ofVolcano.metadata, spec: { schedulerName: "default-scheduler" } },
    ],
    [
      "with another value of a mark is left for the policy to refuse",
      placed,
      { ...placed, metadata: { ...placed.metadata, labels: { "legation.dev/proxy": "false" } } },
      { ...placed, metadata: { ...placed.metadata, labels: { "legation.dev/proxy": "false" } } },
    ],
    ["in overflow mode gets back its label", toOverflow(pod()), {}, toOverflow(pod())],
  ])("%s", (_, old, written, expected) => {
    expect(updated(old, pod(written))).toEqual(pod(expected));
  });

  test("keeps endless tolerations, also if default tolerations replaced them", () => {
    const annotations = { "legation.dev/failover": "never" };
    const old = withEndlessTolerations(proxyPod({ metadata: { annotations } }));
    const defaults = ["not-ready", "unreachable"].map((taint) => ({
      key: `node.kubernetes.io/${taint}`,
      operator: "Exists",
      effect: "NoExecute",
      tolerationSeconds: 300,
    }));
    const spot = { key: "spot", operator: "Exists" };
    const written = proxyPod({ metadata: { annotations }, spec: { tolerations: [spot, ...defaults] } });
    expect(updated(old, written).spec?.tolerations).toEqual([spot, ...(old.spec?.tolerations ?? [])]);
  });

  test("gets a warning only if it does nothing but leave out marks", () => {
    const warnings = (object: object): number => {
      const verdict = restoreMarks(request({ operation: "UPDATE", object, oldObject: placed }));
      return verdict.kind === "denied" ? -1 : verdict.warnings.length;
    };
    const { finalizers: _, ...metadata } = placed.metadata;
    expect(warnings({ ...placed, metadata })).toBe(1);
    expect(warnings({ ...placed, metadata: { ...metadata, annotations: {} } })).toBe(0);
    expect(warnings({ ...placed, metadata, spec: { ...placed.spec, activeDeadlineSeconds: 5 } })).toBe(0);
    expect(warnings(placed)).toBe(0);
  });

  test("has the same result after a second review", () => {
    const map = fc.dictionary(fc.constantFrom("app", "note", ...KEPT_ANNOTATIONS, "legation.dev/proxy"), fc.string());
    const metadata = fc.record(
      { labels: map, annotations: map, finalizers: fc.array(fc.string()) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(metadata, (left) => {
        const once = updated(placed, pod({ metadata: left }));
        expect(updated(placed, once)).toEqual(once);
        expect(Object.keys(once.metadata.annotations ?? {})).toEqual(expect.arrayContaining(Object.keys(DECISION)));
        expect(once.metadata.finalizers).toContain("legation.dev/delegate");
      }),
    );
  });
});

describe("an update of another object", () => {
  const claim = { apiVersion: "v1", kind: "PersistentVolumeClaim", spec: { storageClassName: "fast" } };
  const data = { "legation.dev/cluster": "west", "legation.dev/claim-status": "{}" };

  test.each([
    ["PersistentVolumeClaim", claim, data],
    ["Cluster", { apiVersion: "legation.dev/v1alpha1", kind: "Cluster" }, { "legation.dev/member-uid": "uid-1" }],
  ])("restores Legation's keys on a %s", (kind, object, kept) => {
    const old = { ...object, metadata: { name: "one", annotations: { ...kept, note: "x" } } };
    expect(updated(old, { ...object, metadata: { name: "one" } }, kind)).toMatchObject({
      metadata: { annotations: kept },
    });
    const other = { ...object, metadata: { name: "one", annotations: { ...kept, "legation.dev/cluster": "east" } } };
    expect(updated(old, other, kind)).toEqual(other);
  });

  test("is admitted unchanged if there is nothing to keep", () => {
    const old = { ...claim, metadata: { name: "one", annotations: data } };
    const object = { ...claim, metadata: { name: "one" } };
    expect(updated(old, object, "ConfigMap")).toEqual(object);
  });
});

test("webhook entries and policies cover the restored keys", async () => {
  const entry = z.object({
    name: z.string(),
    matchConditions: z.array(z.object({ expression: z.string() })).default([]),
  });
  const configuration = z.object({ webhooks: z.array(entry) });
  const manifests = await loadManifests(MANIFESTS);
  const entries = manifests.flatMap((manifest) => configuration.safeParse(manifest).data?.webhooks ?? []);
  const asked = entries.find(({ name }) => name.startsWith("pods-marks"))?.matchConditions ?? [];
  const policy = JSON.stringify(manifests.find(({ metadata }) => metadata.name === "legation-marks"));
  for (const key of KEPT_ANNOTATIONS) {
    expect(
      asked.some(({ expression }) => expression.includes(`"${key}"`)),
      key,
    ).toBe(true);
    expect(policy).toContain(key);
  }
});
