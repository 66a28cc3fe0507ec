import { expect, test } from "vitest";
import type { PersistentVolumeClaim, Stored } from "../../../../src/api/kubernetes.ts";
import type { WrittenObject } from "../../../../src/cli/plan/documents.ts";
import { deployment, division, host, plan, whyNot } from "./host.ts";

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

test("pods go where their claim is, and nowhere else", () => {
  const planned = plan(withClaims(claim("data", "west")), using("data"));
  expect(division(planned)).toEqual({ east: 0, west: 3 });
  expect(whyNot(planned, "east")).toEqual(["PersistentVolumeClaim data, which the pod needs, is in west"]);
});

test("the first pod takes a new claim to its member, and the others follow", () => {
  const written = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data" } };
  for (const planned of [plan(withClaims(claim("data")), using("data")), plan(withClaims(), using("data"), written)]) {
    expect(planned.fits).toBe(true);
    expect(planned.workloads[0]?.pods.map(({ cluster }) => cluster)).toEqual(["east", "east", "east"]);
  }
});

test("a claim that is missing, or that no member can have, is waited for in the same words as ever", () => {
  const missing = plan(withClaims(), using("data"));
  expect(missing.workloads[0]?.pods[0]).toMatchObject({
    reason: "FailedScheduling",
    message: 'persistentvolumeclaim "data" not found',
  });
  const bound = plan(withClaims(claim("data", undefined, { volumeName: "pv-1" })), using("data"));
  expect(bound.workloads[0]?.pods[0]?.message).toContain("it is bound to volume pv-1 of the host");
  const apart = plan(withClaims(claim("a", "east"), claim("b", "west")), using("a", "b"));
  expect(apart.workloads[0]).toMatchObject({ outcome: "waits" });
});

test("pods of a StatefulSet have claims of their own, which need not be there yet", () => {
  const { spec, ...rest } = deployment(3);
  const claims = { volumeClaimTemplates: [{ metadata: { name: "data" } }] };
  const database = { ...rest, kind: "StatefulSet", spec: { ...Object(spec), ...claims } };
  const planned = plan(withClaims(claim("data-web-2", "west")), database);
  expect(planned.fits).toBe(true);
  expect(planned.workloads[0]?.pods[2]).toMatchObject({ name: "web-2", cluster: "west" });
});

test.each<[object, string]>([
  [{ volumeName: "pv-1" }, "spec.volumeName: it is bound to volume pv-1 of the host"],
  [{ dataSource: { kind: "PersistentVolumeClaim", name: "old" } }, "spec.dataSourceRef: what it names is on the host"],
])("a claim of the manifest with %j is waited for, whoever makes it", (spec, words) => {
  const written = { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data" }, spec };
  const planned = plan(withClaims(), written, using("data"));
  expect(planned.workloads[0]?.pods[0]?.message).toContain(`PersistentVolumeClaim data: ${words}`);
  const template = deployment(1);
  const set = {
    ...template,
    kind: "StatefulSet",
    spec: { ...Object(template.spec), volumeClaimTemplates: [{ metadata: { name: "data" }, spec }] },
  };
  expect(plan(withClaims(), set).workloads[0]?.pods[0]?.message).toContain(
    `PersistentVolumeClaim data-web-0: ${words}`,
  );
});

test("a claim of the manifest that makes no sense is refused with its field", () => {
  const written = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data" },
    spec: { volumeName: 3 },
  };
  expect(() => plan(withClaims(), written)).toThrow("PersistentVolumeClaim data: spec.volumeName");
  const large = { ...written, spec: { resources: { requests: { storage: "1GB" } } } };
  expect(() => plan(withClaims(), large)).toThrow('spec.resources.requests.storage: "1GB" is no quantity');
});
