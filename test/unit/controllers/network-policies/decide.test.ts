import { describe, expect, test } from "vitest";
import type { NetworkPolicy, Stored } from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/network-policies/decide.ts";
import type { Observed } from "../../../../src/controllers/network-policies/model.ts";
import { toPolicyCopy } from "../../../../src/copies/network-policies.ts";

const host = { id: "host-id", name: "cern" };
const place = { member: "west", namespace: "team" };

function source(name: string, policyTypes = ["Ingress"]): Stored<NetworkPolicy> {
  const spec = { podSelector: {}, policyTypes };
  return { metadata: { name, namespace: "team", uid: name, resourceVersion: "7" }, spec };
}

function copyOf(from: Stored<NetworkPolicy>, metadata: object = {}): Stored<NetworkPolicy> {
  const copy = toPolicyCopy(from, host);
  const name = copy.metadata?.name ?? "";
  return { ...copy, metadata: { ...copy.metadata, name, uid: `copy of ${name}`, resourceVersion: "3", ...metadata } };
}

function observed(parts: Partial<Observed>): Observed {
  return {
    place,
    host,
    usable: true,
    sources: [],
    copies: [],
    used: true,
    idleSince: 0,
    leaving: new Set(),
    restsUntil: () => undefined,
    ...parts,
  };
}

/** What is done, in words. */
function done(parts: Partial<Observed>, now = 0): string[] {
  return decide(observed(parts), now).actions.map((action) => {
    if (action.type === "reconsider") return action.type;
    return `${action.type} ${action.type === "create" ? action.object.metadata?.name : action.copy.metadata.name}`;
  });
}

describe("while pods are there", () => {
  test("creates missing policies, updates differing ones, and deletes surplus ones last", () => {
    const [a, b, c] = [source("a"), source("b"), source("c")];
    const copies = [copyOf(source("b", ["Egress"])), copyOf(c), copyOf(source("d"))];
    expect(done({ sources: [a, b, c], copies })).toEqual([
      "create a.legation-host-id",
      "patch b.legation-host-id",
      "delete d.legation-host-id",
    ]);
  });

  test("nothing is done when all is as on the host", () => {
    const sources = [source("a")];
    expect(decide(observed({ sources, copies: sources.map((one) => copyOf(one)) }), 0)).toEqual({
      actions: [],
      outcome: "InStep",
    });
  });

  test("nothing is done before the host's policies have been read, nor while the member does not answer", () => {
    const { sources: _, ...unread } = observed({ copies: [copyOf(source("a"))] });
    expect(decide(unread, 0)).toEqual({ actions: [], outcome: "Waiting" });
    expect(decide(observed({ usable: false, sources: [source("a")] }), 0)).toEqual({
      actions: [],
      outcome: "Unreachable",
    });
  });

  test("a copy that is going is waited for", () => {
    const going = copyOf(source("a"), { deletionTimestamp: "2026-01-01T00:00:00Z" });
    expect(done({ sources: [source("a")], copies: [going] })).toEqual([]);
    expect(done({ sources: [source("a", ["Egress"])], copies: [going] })).toEqual([]);
    expect(done({ sources: [], copies: [going] })).toEqual([]);
  });

  test("leaves a resting policy until its time, and handles the others", () => {
    const parts = observed({
      sources: [source("a"), source("b")],
      restsUntil: ({ metadata }) => (metadata.name === "a" ? 100 : undefined),
    });
    expect(decide(parts, 99)).toMatchObject({
      actions: [{ type: "create", source: { metadata: { name: "b" } } }],
      requeueAt: 100,
    });
    expect(decide(parts, 100).actions).toHaveLength(2);
  });
});

test("after the last pod the copies stay for ten seconds, whether the host can be read or not", () => {
  const copies = [copyOf(source("a"))];
  const idle = { sources: [source("a")], copies, used: false, idleSince: 1_000 };
  expect(decide(observed(idle), 10_999)).toEqual({ actions: [], outcome: "Idle", requeueAt: 11_000 });
  expect(done(idle, 11_000)).toEqual(["delete a.legation-host-id"]);
  const { sources: _, ...unread } = observed(idle);
  expect(decide(unread, 11_000).actions).toHaveLength(1);
});

test("a copy whose deletion may still happen is deleted for good when pods come, so that they get one that stays", () => {
  const copy = copyOf(source("a"));
  const parts = { sources: [source("a")], copies: [copy], leaving: new Set([copy.metadata.uid]) };
  expect(done(parts)).toEqual(["delete a.legation-host-id"]);
});

test("reconsiders a refused policy after a while, without any pod", () => {
  const refused = observed({ used: false, refusedUntil: 500 });
  expect(decide(refused, 499)).toEqual({ actions: [], outcome: "Refused", requeueAt: 500 });
  expect(decide(refused, 500)).toEqual({ actions: [{ type: "reconsider", place }], outcome: "Refused" });
});
