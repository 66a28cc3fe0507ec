import { describe, expect, test } from "vitest";
import { EXPORTED_ANNOTATION } from "../../../../src/api/keys.ts";
import type { Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/services/decide.ts";
import { type Observed, settlement } from "../../../../src/controllers/services/model.ts";
import { type ServiceObject, type ServiceSpec, toServiceCopy } from "../../../../src/copies/services.ts";

const host = { id: "host-id", name: "cern" };
const now = Date.parse("2026-02-03T04:05:06Z");
const ref = { member: "west", kind: "Service", namespace: "team", name: "web" } as const;

function source(spec: ServiceSpec = {}, uid = "source-uid"): Stored<ServiceObject> {
  const metadata = { name: "web", namespace: "team", uid, resourceVersion: "7" };
  return { metadata, spec: { selector: { app: "web" }, ports: [{ port: 80 }], clusterIP: "10.0.0.1", ...spec } };
}

function copyOf(of: Stored<ServiceObject>, metadata: object = {}): Stored<ServiceObject> {
  const copy = toServiceCopy("Service", of, host);
  const stored = { ...copy.metadata, name: "web", uid: "copy-uid", resourceVersion: "3", ...metadata };
  return { ...copy, metadata: stored };
}

function see(parts: Partial<Observed> = {}): Observed {
  return {
    ref,
    host,
    usable: true,
    source: { state: "present", object: source() },
    wanted: true,
    kept: true,
    idleSince: now,
    exported: { state: "missing" },
    exportDue: 0,
    ...parts,
  };
}

function outcome(parts: Partial<Observed>): string[] {
  const { actions, outcome } = decide(see(parts), now);
  return [outcome, ...actions.map(({ type }) => type)];
}

const copy = copyOf(source());
const marked = copyOf(source(), {
  annotations: { ...copy.metadata.annotations, [EXPORTED_ANNOTATION]: "true" },
});
const changed = source({ ports: [{ port: 81 }] });
const exported = { state: "present", object: source() } as const;

describe("a copy that is not there", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["is made when a pod there is an endpoint", {}, ["Copying", "create"]],
    ["is not made when none is", { wanted: false }, ["Idle"]],
    ["is not made when the host has no such Service", { source: { state: "missing" } }, ["Idle"]],
    ["waits for the host to be read", { source: { state: "unknown" } }, ["Idle"]],
    ["waits for its member", { usable: false }, ["Unreachable"]],
    ["waits after a refusal", { refused: { until: now + 1 } }, ["Refused"]],
    ["is left out for a while when somebody there keeps deleting it", { contestedUntil: now + 1 }, ["Contested"]],
    ["is tried again some time after a refusal", { refused: { until: now } }, ["Copying", "create"]],
  ])("%s", (_, parts, expected) => {
    expect(outcome(parts)).toEqual(expected);
  });
});

describe("a copy that is there", () => {
  test.each<[string, Partial<Observed>, string[]]>([
    ["is left alone when it is like its source", {}, ["InStep"]],
    ["stays when nobody is an endpoint any more", { wanted: false }, ["InStep"]],
    ["follows its source", { source: { state: "present", object: changed } }, ["Copying", "patch"]],
    [
      "is left as it is when the member does not take the change",
      { source: { state: "present", object: changed }, settled: settlement(changed, "3") },
      ["InStep"],
    ],
    [
      "is changed again when somebody else has changed it",
      { source: { state: "present", object: changed }, settled: settlement(changed, "2") },
      ["Copying", "patch"],
    ],
    [
      "waits after its change was refused",
      { source: { state: "present", object: changed }, refused: { until: now + 1 } },
      ["Refused"],
    ],
    [
      "stands for a source that was made anew",
      { source: { state: "present", object: source({}, "another") } },
      ["Copying", "patch"],
    ],
    [
      "is made anew when it is to have no address",
      { source: { state: "present", object: source({ clusterIP: "None" }) } },
      ["Replacing", "delete"],
    ],
    ["goes with its source, though pods are there", { source: { state: "missing" } }, ["Removing", "delete"]],
    [
      "is deleted for certain and made anew when pods are there and its deletion may still happen",
      { leaving: true },
      ["Replacing", "delete"],
    ],
    [
      "stays while the host is being read, though its deletion may still happen",
      { leaving: true, source: { state: "unknown" } },
      ["Waiting"],
    ],
    [
      "is exported no more before it is made anew",
      { copy: marked, exported, source: { state: "present", object: source({ clusterIP: "None" }) } },
      ["Replacing", "unexport"],
    ],
    ["is exported no more before it goes", { copy: marked, source: { state: "missing" } }, ["Removing", "unexport"]],
    ["stays while the host is being read", { source: { state: "unknown" } }, ["Waiting"]],
    ["lingers after the last pod", { kept: false, idleSince: now - 9_999 }, ["Idle"]],
    ["goes some time after the last pod", { kept: false, idleSince: now - 10_000 }, ["Removing", "delete"]],
    [
      "goes though the host is not read",
      { kept: false, idleSince: now - 10_000, source: { state: "unknown" } },
      ["Removing", "delete"],
    ],
    [
      "is waited for when it goes",
      { copy: copyOf(source(), { deletionTimestamp: "2026-02-03T04:05:06Z" }) },
      ["Removing"],
    ],
    ["is exported when the host exports it", { exported }, ["Exporting", "export"]],
    ["is exported again later", { exported, exportDue: now + 1 }, ["InStep"]],
    ["is no longer exported when the host does not", { copy: marked }, ["Exporting", "unexport"]],
    ["stays exported while the host is being read", { copy: marked, exported: { state: "unknown" } }, ["InStep"]],
  ])("%s", (_, parts, expected) => {
    expect(outcome({ copy, ...parts })).toEqual(expected);
  });
});

test("a copy that somebody else keeps changing is left as it is for a while", () => {
  const contested = see({ copy, source: { state: "present", object: changed }, contestedUntil: now + 600_000 });
  expect(decide(contested, now)).toEqual({ actions: [], outcome: "Contested", requeueAt: now + 600_000 });
});
