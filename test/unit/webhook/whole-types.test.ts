import { describe, expect, test } from "vitest";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import { apply, type ReviewParts, request } from "./reviews.ts";

const WHOLE = { "legation.dev/whole": "true" };
const DIVIDED = { "legation.dev/scheduling-preferences": '{"clusters": {"*": {"weight": 1}}}' };
const TEMPLATE = { spec: { containers: [{ name: "main", image: "busybox" }] } };

function job(annotations: object = WHOLE, spec: object = {}, metadata: object = {}): object {
  return { metadata: { name: "sum", annotations, ...metadata }, spec: { template: TEMPLATE, ...spec } };
}

function marked(annotations: object = WHOLE): object {
  const metadata = { labels: { "legation.dev/whole": "true" }, finalizers: ["legation.dev/whole"] };
  return job(annotations, { managedBy: "legation.dev/whole" }, metadata);
}

function cronJob(jobTemplate: object, annotations: object = {}): object {
  return { metadata: { name: "nightly", annotations }, spec: { schedule: "@daily", jobTemplate } };
}

/** The object after admission, or why it is refused. */
function admitted(parts: ReviewParts): unknown {
  const verdict = mutateWorkload(request({ kind: "Job", ...parts }), "annotated");
  return verdict.kind === "denied" ? verdict.message : apply(parts.object, verdict);
}

describe("a Job that runs whole", () => {
  test("gets its label, its finalizer and its manager, and nothing else", () => {
    const annotations = { ...WHOLE, "legation.dev/clusters": "west", "legation.dev/delegate": "true" };
    expect(admitted({ object: job(annotations) })).toEqual(marked(annotations));
    expect(admitted({ object: marked() })).toEqual(marked());
  });

  test("is divided by preferences", () => {
    const object = job({ ...WHOLE, ...DIVIDED }, { completions: 3, parallelism: 2, completionMode: "NonIndexed" });
    expect(admitted({ object })).toMatchObject({ spec: { managedBy: "legation.dev/whole" } });
  });

  test("keeps its marks when an update leaves them out", () => {
    expect(admitted({ operation: "UPDATE", object: job(), oldObject: marked() })).toEqual(marked());
  });

  test('is an ordinary Job with "false"', () => {
    const object = job({ "legation.dev/whole": "false" });
    expect(admitted({ object })).toMatchObject({ spec: { template: { metadata: { annotations: {} } } } });
    expect(admitted({ object })).not.toHaveProperty("spec.managedBy");
  });

  test.each<[string, ReviewParts, string]>([
    ["a group", { object: job({ ...WHOLE, "legation.dev/group": "a" }) }, "legation.dev/group"],
    ['the group "true"', { object: job({ ...WHOLE, "legation.dev/group": "true" }) }, "legation.dev/group"],
    ["a mode", { object: job({ ...WHOLE, "legation.dev/mode": "overflow" }) }, "legation.dev/mode"],
    [
      "preferences on an Indexed Job",
      { object: job({ ...WHOLE, ...DIVIDED }, { completions: 3, completionMode: "Indexed" }) },
      "write spec.completionMode: NonIndexed, or remove the annotation",
    ],
    [
      "preferences without completions",
      { object: job({ ...WHOLE, ...DIVIDED }, { parallelism: 3 }) },
      "divides spec.completions, which is not set",
    ],
    [
      "preferences that move replicas",
      { object: job({ ...WHOLE, "legation.dev/scheduling-preferences": '{"rebalance": true}' }) },
      "rebalance: the completions of a share never move",
    ],
    ["no delegation", { object: job({ ...WHOLE, "legation.dev/delegate": "false" }) }, "legation.dev/delegate"],
    [
      "another manager",
      { object: job(WHOLE, { managedBy: "kueue.x-k8s.io/multikueue" }) },
      "multikueue manages the Job",
    ],
    ["a selector of its own", { object: job(WHOLE, { manualSelector: true }) }, "remove spec.manualSelector"],
    [
      "an elastic Job of Kueue",
      { object: job({ ...WHOLE, "kueue.x-k8s.io/elastic-job": "true" }) },
      "kueue.x-k8s.io/elastic-job",
    ],
    ["a value that is no flag", { object: job({ "legation.dev/whole": "yes" }) }, 'neither "true" nor "false"'],
    ["a cluster list without a name", { object: job({ ...WHOLE, "legation.dev/clusters": "" }) }, "names no cluster"],
    [
      "the annotation on a Job that exists",
      { operation: "UPDATE", object: job(), oldObject: job({}) },
      "create it anew",
    ],
    ["its removal", { operation: "UPDATE", object: job({}), oldObject: marked() }, "create it anew"],
    ["a Deployment", { kind: "Deployment", object: job() }, 'write legation.dev/delegate: "true" instead'],
    ["a CronJob itself", { kind: "CronJob", object: cronJob(job({}), WHOLE) }, "spec.jobTemplate.metadata.annotations"],
  ])("is refused with %s", (_, parts, words) => {
    expect(admitted(parts)).toContain(words);
  });
});

describe("the Job template of a CronJob", () => {
  const template = (annotations: object): object => ({ metadata: { annotations }, spec: { template: TEMPLATE } });

  test("is marked without the finalizer, which no CronJob passes on", () => {
    expect(admitted({ kind: "CronJob", object: cronJob(template(WHOLE)) })).toEqual(
      cronJob({
        metadata: { annotations: WHOLE, labels: { "legation.dev/whole": "true" } },
        spec: { template: TEMPLATE, managedBy: "legation.dev/whole" },
      }),
    );
  });

  test("loses its marks with the annotation", () => {
    const marks = { metadata: { labels: { "legation.dev/whole": "true", app: "sum" } } };
    const object = cronJob({ ...marks, spec: { template: TEMPLATE, managedBy: "legation.dev/whole" } });
    const oldObject = cronJob(template(WHOLE));
    const parts: ReviewParts = { kind: "CronJob", operation: "UPDATE", object, oldObject };
    expect(admitted(parts)).toEqual(cronJob({ metadata: { labels: { app: "sum" } }, spec: { template: TEMPLATE } }));
  });
});
