import { describe, expect, test } from "vitest";
import { EXPORTED_ANNOTATION as MARK } from "../../../../../src/api/keys.ts";
import type { KubeObject, Stored } from "../../../../../src/api/kubernetes.ts";
import { copyKey } from "../../../../../src/controllers/copying/model.ts";
import { Exports } from "../../../../../src/controllers/services/exports/writer.ts";
import { toCopy } from "../../../../../src/copies/kind.ts";
import { SERVICES, toExport } from "../../../../../src/copies/services.ts";
import type { KubeErrorCode } from "../../../../../src/kube/errors.ts";
import { createLogger } from "../../../../../src/telemetry/logger.ts";
import { answering, listing, writing } from "../../../../support/builders/answers.ts";
import { HOST } from "../../../../support/builders/claim.ts";
import { servingExports } from "../../../../support/builders/discovery.ts";
import { kubeError } from "../../../../support/builders/kube-error.ts";
import { member } from "../../../../support/builders/member.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { noting, type Write } from "../../writes.ts";

const ref = { member: "west", kind: "Service", namespace: "team", name: "web" } as const;
const source = { metadata: { name: "web", namespace: "team", uid: "source", resourceVersion: "7" } };
const made = toCopy(SERVICES.Service, source, HOST);
const copy = { ...made, metadata: { ...made.metadata, name: "web", uid: "copy", resourceVersion: "3" } };

function exported(object: KubeObject): Stored<KubeObject> {
  return { ...object, metadata: { ...object.metadata, name: "web", uid: "export", resourceVersion: "4" } };
}

function optionsAt(now: () => number): ConstructorParameters<typeof Exports>[0] {
  return { host: HOST, recorder: { record: () => {} }, clock: { now }, onMade: () => {} };
}

describe("a Service that is no longer exported", () => {
  const unmarked = { to: "west patch", demands: { uid: "copy" } };
  const own = exported({ metadata: { name: "web", namespace: "team" } });
  test.each<[string, Stored<KubeObject>[], Write[]]>([
    [
      "loses its export, if it is still the same",
      [exported(toExport(copy, source, HOST, "multicluster.x-k8s.io/v1beta1"))],
      [{ to: "west delete", demands: { uid: "export" } }, unmarked],
    ],
    ["leaves the member's own export alone", [own], [unmarked]],
    ["has none", [], [unmarked]],
  ])("%s", async (_, there, expected) => {
    const writes: Write[] = [];
    const client = fakeClient({
      cluster: "west",
      raw: servingExports("v1beta1"),
      list: listing(() => there),
      delete: async () => {},
      patch: answering(copy),
    });
    const exports = new Exports(optionsAt(() => 0));
    const log = createLogger({ level: "silent" });
    const context = { key: copyKey(ref), signal: new AbortController().signal, heardAt: 0, log };
    await exports.remove(member("west", noting(client, writes)), { type: "unexport", ref, copy }, context);
    expect(writes).toEqual(expected);
  });
});

test("keeps the mark of a Service's export while a starting member denies the read", async () => {
  const detail = 'serviceexports is forbidden: User "legation" cannot list resource "serviceexports" in API group "x"';
  const denied = kubeError("Forbidden", detail, { verb: "list", resource: "serviceexports" });
  const writes: Write[] = [];
  const client = fakeClient({
    cluster: "west",
    raw: servingExports("v1beta1"),
    list: () => Promise.reject(denied),
    patch: answering(copy),
  });
  let now = 0;
  const exports = new Exports(optionsAt(() => now));
  const log = createLogger({ level: "silent" });
  const context = { key: copyKey(ref), signal: new AbortController().signal, heardAt: 0, log };
  const remove = () => exports.remove(member("west", noting(client, writes)), { type: "unexport", ref, copy }, context);
  await expect(remove()).rejects.toBe(denied);
  expect(writes).toEqual([]);
  // A right that the member's role lacks.
  now = 10_000;
  await remove();
  expect(writes).toHaveLength(1);
});

describe("a Service that is exported", () => {
  const marked = {
    ...copy,
    metadata: { ...copy.metadata, annotations: { ...copy.metadata.annotations, [MARK]: "true" } },
  };
  test.each<[string, Stored<KubeObject>, KubeErrorCode | undefined, string[]]>([
    [
      "is marked before its export is created, so that the next leader can remove it",
      copy,
      undefined,
      ["mark", "make"],
    ],
    ["is not marked twice", marked, undefined, ["make"]],
    ["gets no export if it is another one by now", copy, "Conflict", ["mark"]],
  ])("%s", async (_, there, problem, expected) => {
    const done: string[] = [];
    const exports = new Exports(optionsAt(() => 0));
    const client = fakeClient({
      raw: servingExports("v1beta1"),
      ...writing(({ verb }) => {
        done.push(verb === "patch" ? "mark" : "make");
        if (verb !== "patch" || problem === undefined) return copy;
        throw kubeError(problem, "no", { verb: "patch", resource: "services" });
      }),
    });
    const key = copyKey(ref);
    const context = { key, signal: new AbortController().signal, heardAt: 0, log: createLogger({ level: "silent" }) };
    await exports.make(member("west", client), { type: "export", ref, copy: there, source }, context);
    expect(done).toEqual(expected);
    const isMade = expected.includes("make");
    // A copy that is created anew has none.
    expect([exports.due(key, "copy"), exports.due(key, "another")]).toEqual([isMade ? 600_000 : 0, 0]);
  });
});
