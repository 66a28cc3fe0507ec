import { expect, test } from "vitest";
import type { EndpointSlice, KubeObject, Service, ServiceImport, Stored } from "../../../../../src/api/kubernetes.ts";
import { specOf } from "../../../../../src/api/service-fields.ts";
import {
  decideImport,
  type ObservedImport,
  type WantedImport,
} from "../../../../../src/controllers/services/imports/decide.ts";
import {
  derivedService,
  type ImportObject,
  importObject,
  importSlice,
} from "../../../../../src/copies/import-objects.ts";
import { mergeExports } from "../../../../../src/copies/service-imports.ts";

const HOST = { id: "host-id", name: "berlin" };
const REF = { namespace: "team", name: "web" };
const WALL = Date.parse("2026-01-02T03:04:05Z");
const PORTS = [{ name: "http", port: 80, protocol: "TCP" }];

/** The object as an API server has stored it. */
function stored<T>(object: ImportObject, more: object = {}): Stored<T & KubeObject> {
  const { metadata, ...content } = object;
  const ids = { uid: `uid of ${metadata.name}`, resourceVersion: "1" };
  return JSON.parse(JSON.stringify({ ...content, ...more, metadata: { ...metadata, ...ids } }));
}

const exported = { metadata: { ...REF, uid: "e", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" } };
const ofWest = (spec: Service["spec"]) => {
  const merged = mergeExports([
    { cluster: "west", exported, service: { metadata: exported.metadata, spec: { ports: PORTS, ...spec } } },
  ]);
  if (merged === undefined) throw new Error("no exports");
  return merged;
};

/** An import of west's Service as it is wanted, in a cluster that has it all. */
function given(spec: Service["spec"] = {}): { wanted: WantedImport; observed: ObservedImport } {
  const merged = ofWest(spec);
  const allocated = { clusterIPs: ["10.96.0.1"], ipFamilies: ["IPv4"] };
  const owner = stored<ServiceImport>(importObject(REF, merged, undefined, HOST), {
    apiVersion: "multicluster.x-k8s.io/v1beta1",
  });
  const service = derivedService(REF, merged, { owner, isNew: true }, HOST);
  const made = stored<Service>(service, { spec: { ...specOf(service), ...allocated } });
  const content = {
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints: [{ addresses: ["10.1.0.1"] }],
  };
  const slice = importSlice(REF, { cluster: "west", source: "web-1", ...content }, owner, HOST);
  const wanted = {
    import: importObject(REF, merged, made, HOST),
    service,
    slices: [slice],
    clusters: ["west"],
  };
  return {
    wanted,
    observed: {
      wanted,
      import: stored<ServiceImport>(wanted.import, { status: { clusters: [{ cluster: "west" }] } }),
      service: made,
      slices: [stored<EndpointSlice>(slice)],
      isForeign: false,
      unread: new Set(),
      keeps: new Set(),
      exported: undefined,
      heldUntil: () => undefined,
    },
  };
}

function writes(observed: ObservedImport): string[] {
  return decideImport(observed, 0, WALL).actions.map(
    ({ type, kind, object }) => `${type} ${kind} ${object.metadata.name}`,
  );
}

const { wanted, observed } = given();
const [SERVICE, SLICE] = [wanted.service?.metadata.name, wanted.slices[0]?.metadata.name];

test.each<[string, Partial<ObservedImport>, string[]]>([
  ["writes nothing when all is right", {}, []],
  [
    "makes the import first: it owns the rest",
    { import: undefined, service: undefined, slices: [] },
    ["create import web"],
  ],
  [
    "makes the Service and its slices",
    { service: undefined, slices: [] },
    [`create service ${SERVICE}`, `create slice ${SLICE}`],
  ],
  ["tells of the exporting clusters", { wanted: { ...wanted, clusters: ["west", "east"] } }, ["status import web"]],
  ["deletes slices of an export that is over", { wanted: { ...wanted, slices: [] } }, [`delete slice ${SLICE}`]],
  [
    "keeps slices of a cluster that is not read, and what its export decides",
    {
      wanted: { ...given({ sessionAffinity: "ClientIP" }).wanted, slices: [] },
      unread: new Set(["west"]),
      keeps: new Set(["west"]),
    },
    [],
  ],
  ["deletes the import, which takes the rest along", { wanted: undefined }, ["delete import web"]],
  [
    "deletes what is left of an import",
    { wanted: undefined, import: undefined },
    [`delete slice ${SLICE}`, `delete service ${SERVICE}`],
  ],
  ["deletes no import while an exporting cluster is not read", { wanted: undefined, unread: new Set(["west"]) }, []],
  [
    "deletes an import, whichever other cluster is not read",
    { wanted: undefined, unread: new Set(["east"]) },
    ["delete import web"],
  ],
  [
    "deletes slices of a cluster that is lost before it was read",
    { wanted: { ...wanted, slices: [] }, unread: new Set(["west"]) },
    [`delete slice ${SLICE}`],
  ],
  ["leaves another implementation's import alone", { isForeign: true, wanted: undefined }, []],
  [
    "makes the Service again where it gets or loses its address",
    { wanted: given({ clusterIP: "None" }).wanted },
    [`delete service ${SERVICE}`],
  ],
])("%s", (_, changed, expected) => {
  expect(writes({ ...observed, ...changed })).toEqual(expected);
});

test("patches what another client changed, and removes fields that the export has no more", () => {
  const before = given({ trafficDistribution: "PreferClose" }).observed;
  const { actions } = decideImport({ ...before, wanted }, 0, WALL);
  const patches = actions.flatMap((action) => (action.type === "patch" ? [action.body] : []));
  expect(patches).toMatchObject([{ spec: { trafficDistribution: null } }, { spec: { trafficDistribution: null } }]);
  const labelled = {
    ...before.import,
    metadata: { ...before.import?.metadata, labels: { ...wanted.import.metadata.labels, old: "1" } },
  };
  const [patch] = decideImport({ ...observed, import: labelled as Stored<ServiceImport> }, 0, WALL).actions;
  expect(patch).toMatchObject({ type: "patch", body: { metadata: { labels: { old: null } } } });
});

test("holds the same write until it may be sent again, and writes the rest", () => {
  const heldUntil: ObservedImport["heldUntil"] = ({ kind }) => (kind === "service" ? 5_000 : undefined);
  const decision = decideImport({ ...observed, service: undefined, slices: [], heldUntil }, 0, WALL);
  expect(decision.actions.map(({ kind }) => kind)).toEqual(["slice"]);
  expect(decision.requeueAt).toBe(5_000);
});

test("keeps the time of a condition whose status stays", () => {
  const conditions = [{ type: "Valid", status: "True", reason: "Valid", message: "as before" }];
  const shown = {
    ...conditions[0],
    type: "Valid",
    status: "True",
    message: "in other words",
    lastTransitionTime: "2025-01-01T00:00:00Z",
  };
  const object = { ...exported, status: { conditions: [shown] } };
  const [action] = decideImport({ ...observed, exported: { object, conditions } }, 0, WALL).actions;
  expect(action).toMatchObject({
    type: "status",
    body: { conditions: [{ message: "as before", lastTransitionTime: "2025-01-01T00:00:00Z" }] },
  });
  const fresh = decideImport({ ...observed, exported: { object: exported, conditions } }, 0, WALL).actions[0];
  expect(fresh).toMatchObject({ body: { conditions: [{ lastTransitionTime: "2026-01-02T03:04:05Z" }] } });
});

test("an export sets no marks of Legation, and none of delivery tools", () => {
  const marks = {
    "legation.dev/host": "another",
    "legation.dev/whole": "true",
    "argocd.argoproj.io/instance": "shop",
    team: "a",
  };
  const { metadata } = importObject(REF, { ...ofWest({}), labels: marks, annotations: marks }, undefined, HOST);
  expect(metadata.labels).toEqual({
    team: "a",
    "legation.dev/host": HOST.id,
    "app.kubernetes.io/managed-by": "legation",
  });
  expect(Object.keys(metadata.annotations ?? {})).toEqual(expect.not.arrayContaining(["legation.dev/whole"]));
});
