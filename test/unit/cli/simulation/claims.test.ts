import { expect, test } from "vitest";
import type { PersistentVolumeClaim, Stored } from "../../../../src/api/kubernetes.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { deployment, division, plan, whyNot } from "../plan/plan-with.ts";
import { host } from "./host.ts";

function claim(name: string, cluster?: string, spec?: PersistentVolumeClaim["spec"]): Stored<PersistentVolumeClaim> {
  return {
    metadata: {
      name,
      namespace: "team",
      uid: name,
      resourceVersion: "1",
      ...(cluster === undefined ? {} : { annotations: { "legation.dev/cluster": cluster } }),
    },
    ...(spec === undefined ? {} : { spec }),
  };
}

const members = { east: {}, west: {} };
const withClaims = (...claims: Stored<PersistentVolumeClaim>[]): ReturnType<typeof host> =>
  host(members, { claims: new Map([["team", claims]]) });
const using = (...names: string[]): WrittenObject =>
  deployment(3, {}, { volumes: names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })) });

test("places pods in the member of their claim only", async () => {
  const planned = await plan(withClaims(claim("data", "west")), using("data"));
  expect(division(planned)).toEqual({ east: 0, west: 3 });
  expect(whyNot(planned, "east")).toEqual(["PersistentVolumeClaim data, which the pod needs, is in west"]);
});

test("places all pods where the first one has taken a new claim", async () => {
  const written = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data" } };
  for (const planned of [
    await plan(withClaims(claim("data")), using("data")),
    await plan(withClaims(), using("data"), written),
  ]) {
    expect(planned.fits).toBe(true);
    expect(planned.workloads[0]?.pods.map(({ cluster }) => cluster)).toEqual(["east", "east", "east"]);
  }
});

test("lets pods wait for a missing claim, or one that no member can have, in the condition's words", async () => {
  const missing = await plan(withClaims(), using("data"));
  expect(missing.workloads[0]?.pods[0]).toMatchObject({
    reason: "FailedScheduling",
    message: 'persistentvolumeclaim "data" not found',
  });
  const bound = await plan(withClaims(claim("data", undefined, { volumeName: "pv-1" })), using("data"));
  expect(bound.workloads[0]?.pods[0]?.message).toContain("it is bound to volume pv-1 of the host");
  const apart = await plan(withClaims(claim("a", "east"), claim("b", "west")), using("a", "b"));
  expect(apart.workloads[0]).toMatchObject({ outcome: "waits" });
});

test("gives pods of a StatefulSet claims of their own, which need not exist yet", async () => {
  const { spec, ...rest } = deployment(3);
  const claims = { volumeClaimTemplates: [{ metadata: { name: "data" } }] };
  const database = { ...rest, kind: "StatefulSet", spec: { ...Object(spec), ...claims } };
  const planned = await plan(withClaims(claim("data-web-2", "west")), database);
  expect(planned.fits).toBe(true);
  expect(planned.workloads[0]?.pods[2]).toMatchObject({ name: "web-2", cluster: "west" });
});

test.each<[object, string]>([
  [{ volumeName: "pv-1" }, "spec.volumeName: it is bound to volume pv-1 of the host"],
  [{ dataSource: { kind: "PersistentVolumeClaim", name: "old" } }, "spec.dataSourceRef: what it names is on the host"],
])("waits for a claim of the manifest with %j, whoever makes it", async (spec, words) => {
  const written = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data" }, spec };
  const planned = await plan(withClaims(), written, using("data"));
  expect(planned.workloads[0]?.pods[0]?.message).toContain(`PersistentVolumeClaim data: ${words}`);
  const template = deployment(1);
  const set = {
    ...template,
    kind: "StatefulSet",
    spec: { ...Object(template.spec), volumeClaimTemplates: [{ metadata: { name: "data" }, spec }] },
  };
  expect((await plan(withClaims(), set)).workloads[0]?.pods[0]?.message).toContain(
    `PersistentVolumeClaim data-web-0: ${words}`,
  );
});

test("refuses an invalid claim of the manifest with its field", async () => {
  const written = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data" },
    spec: { volumeName: 3 },
  };
  await expect(plan(withClaims(), written)).rejects.toThrow("PersistentVolumeClaim data: spec.volumeName");
  const large = { ...written, spec: { resources: { requests: { storage: "1GB" } } } };
  await expect(plan(withClaims(), large)).rejects.toThrow('spec.resources.requests.storage: "1GB" is no quantity');
});
