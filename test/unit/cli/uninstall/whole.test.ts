import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import { listMarkedWhole, releaseWhole, unmarkMakers } from "../../../../src/cli/uninstall/marked.ts";
import { JOBS } from "../../../../src/whole/jobs/type.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const WHOLE = "legation.dev/whole";
const ref = { namespace: "team", name: "sum" };
const ended = (type: string): Job["status"] => ({ conditions: [{ type, status: "True" }] });

function job(parts: { metadata?: object; spec?: object; status?: Job["status"] } = {}): Stored<Job> {
  const { status } = parts;
  const metadata = { ...ref, uid: "u", resourceVersion: "1", ...parts.metadata };
  return { metadata, spec: { template: {}, ...parts.spec }, ...(status === undefined ? {} : { status }) };
}

/** The requests by which a Job is released. */
async function requestsFor(status?: Job["status"]): Promise<unknown[]> {
  const requests: unknown[] = [];
  const client = fakeClient({
    delete: async (_resource, of, { uid, propagationPolicy } = {}) => {
      requests.push(["delete", of, { uid, propagationPolicy }]);
    },
    patch: async (_resource, of, { body }) => {
      requests.push(["patch", of, body]);
      return { metadata: {} };
    },
  });
  const metadata = { finalizers: ["x.io/y", WHOLE] };
  const object = job({ metadata, ...(status === undefined ? {} : { status }) });
  await releaseWhole(client, { type: JOBS, object }, signal);
  return requests;
}

describe("a whole Job that is released", () => {
  const withoutFinalizer = [
    { op: "test", path: "/metadata/uid", value: "u" },
    { op: "test", path: "/metadata/finalizers/1", value: WHOLE },
    { op: "remove", path: "/metadata/finalizers/1" },
  ];

  test.each<[string, Job["status"]]>([
    ["has not started", undefined],
    ["runs", { active: 2, startTime: "2026-01-01T00:00:00Z" }],
  ])("is deleted when it %s", async (_, status) => {
    expect(await requestsFor(status)).toEqual([
      ["delete", ref, { uid: "u", propagationPolicy: "Background" }],
      ["patch", ref, withoutFinalizer],
    ]);
  });

  test.each(["Complete", "Failed"])("stays without Legation's marks when it is %s", async (type) => {
    const marks = {
      uid: "u",
      labels: { [WHOLE]: null },
      annotations: { "legation.dev/cluster": null, "legation.dev/shares": null },
    };
    expect(await requestsFor(ended(type))).toEqual([
      ["patch", ref, withoutFinalizer],
      ["patch", ref, { metadata: marks }],
    ]);
  });

  test("is released in time where a policy that is gone still refuses it", async () => {
    let refusals = 1;
    const patch = async () => {
      if (refusals-- > 0) throw kubeError("Forbidden", "no", { cluster: "host", verb: "patch", objectName: "sum" });
      return { metadata: {} };
    };
    const object = job({ metadata: { finalizers: [WHOLE] }, status: ended("Complete") });
    await releaseWhole(fakeClient({ patch }), { type: JOBS, object }, signal);
    expect(refusals).toBeLessThan(0);
  });
});

test("finds Jobs by label, finalizer or spec.managedBy", async () => {
  const managed = { spec: { managedBy: WHOLE } };
  const items = [
    job(),
    job({ metadata: { name: "labelled", labels: { [WHOLE]: "true" } } }),
    job({ metadata: { name: "held", finalizers: [WHOLE] }, status: ended("Failed") }),
    job({ metadata: { name: "managed" }, ...managed }),
    job({ metadata: { name: "released" }, ...managed, status: ended("Complete") }),
  ];
  const host = fakeClient({ list: async () => ({ items, resourceVersion: "1", size: 0 }) });
  const found = await listMarkedWhole(host, signal);
  expect(found.map(({ object }) => object.metadata.name)).toEqual(["labelled", "held", "managed"]);
});

test("removes the marks from a CronJob's Job template, though a webhook that is gone puts them back once", async () => {
  const cronJob = (name: string, managedBy?: string): object => ({
    metadata: { name, namespace: "team", uid: `uid-of-${name}`, resourceVersion: "1" },
    spec: { jobTemplate: { spec: { managedBy } } },
  });
  const items = [cronJob("own"), cronJob("kueue", "kueue.x-k8s.io/multikueue"), cronJob("whole", WHOLE)];
  const bodies: unknown[] = [];
  const host = fakeClient({
    list: async () => ({ items, resourceVersion: "1", size: 0 }),
    patch: async (_resource, { name }, { body }) => {
      bodies.push([name, body]);
      return cronJob(name, bodies.length === 1 ? WHOLE : undefined);
    },
  });
  expect(await unmarkMakers(host, signal)).toEqual(["team/whole"]);
  const jobTemplate = { metadata: { labels: { [WHOLE]: null } }, spec: { managedBy: null } };
  const patched = ["whole", { metadata: { uid: "uid-of-whole" }, spec: { jobTemplate } }];
  expect(bodies).toEqual([patched, patched]);
});
