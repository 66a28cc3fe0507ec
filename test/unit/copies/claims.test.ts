import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim, Volume } from "../../../src/api/kubernetes.ts";
import {
  claimNames,
  claimProblem,
  claimStatus,
  clusterOf,
  toMemberClaim,
  wantedSize,
  wasSeen,
} from "../../../src/copies/claims.ts";
import { isCopy } from "../../../src/copies/copy-metadata.ts";
import { persistentVolumeClaims } from "../../../src/kube/resources.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { claim, HOST, memberClaim } from "../../support/builders/claim.ts";
import { pod } from "../../support/builders/pod.ts";

const volumeOf = (name: string, claimName: string): Volume => ({ name, persistentVolumeClaim: { claimName } });
const sized = (storage: string): PersistentVolumeClaim["spec"] => ({ resources: { requests: { storage } } });

describe("claims that a pod names", () => {
  test.each<[string, Volume[], string[]]>([
    ["none", [{ name: "a", emptyDir: {} }], []],
    [
      "each once, however many volumes it is",
      [volumeOf("a", "data"), volumeOf("b", "logs"), volumeOf("c", "data")],
      ["data", "logs"],
    ],
    [
      "not those that a cluster makes of the pod's own spec",
      [{ name: "a", ephemeral: { volumeClaimTemplate: { spec: {} } } }],
      [],
    ],
  ])("are %s", (_case, volumes, names) => {
    expect(claimNames(pod({ spec: { volumes } }))).toEqual(names);
  });
});

describe("claimProblem", () => {
  test.each<[string, PersistentVolumeClaim["spec"], string]>([
    [
      "is bound to a volume of the host",
      { volumeName: "pv-1" },
      "PersistentVolumeClaim data: spec.volumeName: it is bound to volume pv-1 of the host",
    ],
    [
      "is made of a snapshot",
      { dataSource: { kind: "VolumeSnapshot", name: "s" } },
      "PersistentVolumeClaim data: spec.dataSource: what it names is on the host",
    ],
    [
      "is made by a populator",
      { dataSourceRef: { kind: "Import", name: "i" } },
      "PersistentVolumeClaim data: spec.dataSourceRef: what it names is on the host",
    ],
    // The API server sets both when one is written.
    [
      "is made of what both fields name",
      {
        dataSource: { kind: "PersistentVolumeClaim", name: "c" },
        dataSourceRef: { kind: "PersistentVolumeClaim", name: "c" },
      },
      "spec.dataSourceRef: ",
    ],
  ])("refuses a claim that %s, and says what to write instead", (_case, spec, says) => {
    const problem = claimProblem(claim({ spec }));
    expect(problem).toContain(says);
    expect(problem).toContain("write a claim");
  });

  test.each<[string, PersistentVolumeClaim["spec"]]>([
    ["an ordinary one", {}],
    ["one whose volume name is empty", { volumeName: "" }],
  ])("accepts %s", (_case, spec) => {
    expect(claimProblem(claim({ spec }))).toBeUndefined();
  });

  test("accepts a claim that is in a member, whatever the host's provisioner did since", () => {
    const metadata = { annotations: { "legation.dev/cluster": "west" } };
    expect(claimProblem(claim({ metadata, spec: { volumeName: "pv-1" } }))).toBeUndefined();
  });
});

describe("a new claim in a member", () => {
  test("has the host's request and labels, and its owner annotation", () => {
    const spec = {
      accessModes: ["ReadWriteMany"],
      resources: { requests: { storage: "3Gi" }, limits: { storage: "4Gi" } },
      volumeMode: "Block",
      selector: { matchLabels: { disk: "fast" } },
      volumeAttributesClassName: "gold",
      storageClassName: "fast",
    };
    const made = toMemberClaim(claim({ metadata: { labels: { app: "db" } }, spec }), HOST);
    expect(made.spec).toEqual(spec);
    expect(made.metadata).toMatchObject({ name: "data", namespace: "team", labels: { app: "db" } });
    expect(ownerOf(made)).toEqual({
      cluster: "cern",
      kind: "PersistentVolumeClaim",
      namespace: "team",
      name: "data",
      uid: "uid-1",
    });
    expect(isCopy(made, HOST.id, persistentVolumeClaims)).toBe(true);
    expect(isCopy(made, "another", persistentVolumeClaims)).toBe(false);
  });

  test("has no binding, mark or annotation of the host", () => {
    const metadata = {
      labels: { "legation.dev/delegate": "true" },
      annotations: {
        "legation.dev/cluster": "west",
        "volume.kubernetes.io/selected-node": "legation-west",
        "pv.kubernetes.io/bind-completed": "yes",
      },
      finalizers: ["kubernetes.io/pvc-protection"],
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "set" }],
    };
    const spec = { volumeName: "pv-1", dataSource: { kind: "VolumeSnapshot", name: "s" } };
    const made = toMemberClaim(claim({ metadata, spec }), HOST);
    expect(Object.keys(made.metadata?.labels ?? {}).sort()).toEqual(["legation.dev/copy", "legation.dev/host"]);
    expect(Object.keys(made.metadata?.annotations ?? {})).toEqual(["legation.dev/owner"]);
    expect(made.metadata).not.toHaveProperty("finalizers");
    expect(made.metadata).not.toHaveProperty("ownerReferences");
    expect(made.spec).not.toHaveProperty("volumeName");
    expect(made.spec).not.toHaveProperty("dataSource");
    expect(made).not.toHaveProperty("status");
  });

  test.each<[string, string | undefined, Record<string, string>, string | undefined]>([
    ["the class of the same name without a mapping", "fast", {}, "fast"],
    ["the mapped class", "fast", { fast: "premium-rwo" }, "premium-rwo"],
    [
      "the member's default where the host's names none",
      undefined,
      { "": "made-by-hand", fast: "premium-rwo" },
      undefined,
    ],
    ["no provisioning if the host's has none", "", {}, ""],
    ["the class that no provisioning is mapped to", "", { "": "made-by-hand" }, "made-by-hand"],
    ["no provisioning if a class is mapped to it", "fast", { fast: "" }, ""],
    ["the class of a name that every JavaScript object has", "constructor", {}, "constructor"],
  ])("has %s", (_case, named, classes, expected) => {
    const spec = named === undefined ? {} : { storageClassName: named };
    const made = toMemberClaim(claim({ spec }), HOST, classes);
    expect(made.spec?.storageClassName).toBe(expected);
    expect("storageClassName" in (made.spec ?? {})).toBe(expected !== undefined);
  });

  test.each<[string, string, string]>([
    ["the class of the annotation, which Kubernetes prefers", "slow", "slow"],
    ["the class that is in its place there", "fast", "premium-rwo"],
    ["no provisioning if the annotation is empty", "", ""],
  ])("has %s", (_case, named, expected) => {
    const metadata = { annotations: { "volume.beta.kubernetes.io/storage-class": named } };
    const made = toMemberClaim(claim({ metadata, spec: { storageClassName: "other" } }), HOST, { fast: "premium-rwo" });
    expect(made.spec?.storageClassName).toBe(expected);
    expect(Object.keys(made.metadata?.annotations ?? {})).toEqual(["legation.dev/owner"]);
    expect(toMemberClaim(claim({ metadata }), HOST).spec?.storageClassName).toBe(named);
  });
});

describe("the wanted size", () => {
  test.each<[string, string, string, string | undefined]>([
    ["is the host's if the member's is smaller", "2Gi", "1Gi", "2Gi"],
    ["is undefined if both are equal", "1Gi", "1Gi", undefined],
    ["is undefined if both are equal in other units", "1Gi", "1024Mi", undefined],
    ["is undefined if the member's has grown", "1Gi", "5Gi", undefined],
    ["counts decimal and binary units as they are", "1100M", "1Gi", "1100M"],
  ])("%s", (_case, host, member, expected) => {
    expect(wantedSize(claim({ spec: sized(host) }), claim({ spec: sized(member) }))).toBe(expected);
  });
});

describe("the status annotation on the host's claim", () => {
  test("holds uid, phase, size and volume, and why the claim did not grow", () => {
    const bound = memberClaim(claim(), { spec: { volumeName: "pv-9" } });
    const said = { uid: "member-uid", phase: "Bound", capacity: "1Gi", volumeName: "pv-9" };
    expect(JSON.parse(claimStatus(bound, undefined))).toEqual(said);
    expect(JSON.parse(claimStatus(bound, "the class forbids it"))).toEqual({
      ...said,
      notGrown: "the class forbids it",
    });
  });

  test("is Pending while the member reports nothing", () => {
    const { status: _, ...fresh } = memberClaim(claim());
    expect(JSON.parse(claimStatus(fresh, undefined))).toEqual({ uid: "member-uid", phase: "Pending" });
  });

  test("shows that a claim was seen, and where", () => {
    const annotations = { "legation.dev/cluster": "west", "legation.dev/claim-status": "{}" };
    expect([clusterOf(claim()), wasSeen(claim())]).toEqual([undefined, false]);
    expect([clusterOf(claim({ metadata: { annotations } })), wasSeen(claim({ metadata: { annotations } }))]).toEqual([
      "west",
      true,
    ]);
  });
});
