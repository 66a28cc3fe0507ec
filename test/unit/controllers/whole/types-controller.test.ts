import { expect, onTestFinished, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { KubeObject, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { TypesController } from "../../../../src/controllers/whole/types-controller.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import type { ClusterClient, WatchEvent, WatchOptions } from "../../../../src/kube/client.ts";
import { customResourceDefinitions, type Resource } from "../../../../src/kube/resources.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { answering, listing, writing } from "../../../support/builders/answers.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { member } from "../../../support/builders/member.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

const spec = { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" };

function type(uid: string, metadata: object = {}): Stored<DelegatedType> {
  const finalizers = ["legation.dev/delegated-type"];
  return { metadata: { name: "widgets.example.com", uid, resourceVersion: uid, finalizers, ...metadata }, spec };
}

const widget: Stored<AnyObject> = {
  metadata: {
    name: "one",
    namespace: "team",
    uid: "u1",
    resourceVersion: "1",
    labels: { "legation.dev/whole": "true" },
  },
};

/** Starts the controller of types on a host with these members, until the test ends. */
function startTypes(
  members: Parameters<typeof surroundings>[0],
  { host, clock }: { readonly host: ClusterClient; readonly clock: FakeClock },
): void {
  const controller = new TypesController({
    ...surroundings(members, clock),
    host,
    everywhere: undefined,
    proxies: new Store<Pod>(),
    followers: {
      add: () => {},
      remove: () => {},
      onTypesRead: () => {},
      groupOf: () => undefined,
      devices: { preparationFor: () => "prepared" },
    },
    rules: { parse: () => ({ ok: true, placement: {} }), namespaceLabels: () => ({}) },
    restoredHost: { keeps: () => false, confirm: async () => {} },
  });
  onTestFinished(() => controller.stop());
  controller.start();
}

test("follows the objects of a type that was deleted and created anew while the watch was cut", async () => {
  const clock = new FakeClock();
  let types: readonly KubeObject[] = [type("1", { deletionTimestamp: "2026-01-01T00:00:00Z" })];
  const cut = Promise.withResolvers<never>();
  const patched: string[] = [];
  const host = quietClient([], {
    list: listing((plural) => (plural === "delegatedtypes" ? types : [widget])),
    watch: async function* <T extends KubeObject>(
      { plural }: Resource<T>,
      { signal, onOpen }: WatchOptions,
    ): AsyncGenerator<WatchEvent<T>> {
      onOpen?.();
      const ended = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await (plural === "delegatedtypes" ? Promise.race([ended, cut.promise]) : ended);
    },
    ...writing(({ plural, body }) => void patched.push(`${plural} ${JSON.stringify(body)}`)),
  });
  startTypes([], { host, clock });
  await clock.advance(1_000);
  expect(patched.join()).not.toContain("widgets {");
  types = [type("2")];
  cut.reject(kubeError("Gone", "too old", { verb: "watch", resource: "delegatedtypes" }));
  await clock.advance(60_000);
  expect(patched.join()).toContain('widgets {"metadata":{"resourceVersion":"1","finalizers":["legation.dev/whole"]}}');
});

test.each([
  [
    "is deleted",
    "its copy had said that it stays",
    { from: { "legation.dev/on-delete": "orphan" }, to: {} },
    "delete one",
  ],
  ["stays", "its copy knew", { from: {}, to: { "legation.dev/on-delete": "orphan" } }, "patch one"],
] as const)(
  "a copy %s as its object said last, when that is deleted before %s",
  async (_, __, { from, to }, expected) => {
    const clock = new FakeClock();
    const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["legation.dev/whole"] };
    const object = { ...widget, metadata: { ...widget.metadata, ...deleting, annotations: to } };
    const made = toCopy(
      delegatedKind(type("1"), (text) => text),
      { ...widget, metadata: { ...widget.metadata, annotations: from } },
      HOST,
    );
    const copy = { ...made, metadata: { ...made.metadata, uid: "m1", resourceVersion: "5" } };
    const host = quietClient([], {
      list: listing((plural) => (plural === "delegatedtypes" ? [type("1")] : [object])),
      find: async () => undefined,
      patch: answering(),
    });
    const writes: string[] = [];
    const client = quietClient(
      [copy],
      writing(({ verb, name }) => writes.push(`${verb} ${name}`)),
    );
    const west = member("west", client, { candidate: () => candidateNamed("west") });
    startTypes([west], { host, clock });
    await clock.advance(1_000);
    expect(writes.at(0)).toBe(expected);
  },
);

test("keeps a definition whose object is not for members any more, and removes the marks of a whole object", async () => {
  const clock = new FakeClock();
  const { group, version, plural, kind } = customResourceDefinitions;
  const definitions = type("1", { name: `${plural}.${group}` });
  const ofDefinitions = { ...definitions, spec: { group, version, plural, kind, scope: "Cluster" as const } };
  const { namespace: _, ...metadata } = widget.metadata;
  const source = { metadata };
  const made = toCopy(
    delegatedKind(ofDefinitions, (text) => text),
    source,
    HOST,
  );
  const copy = { ...made, metadata: { ...made.metadata, uid: "m1", resourceVersion: "5" } };
  const taken = {
    metadata: { ...metadata, labels: { "legation.dev/whole": "false" }, finalizers: ["legation.dev/whole"] },
  };
  const host = quietClient([], {
    list: listing((plural) => (plural === "delegatedtypes" ? [ofDefinitions] : [taken])),
    find: async () => undefined,
    patch: answering(),
  });
  const writes: string[] = [];
  const client = quietClient(
    [copy],
    writing(({ verb, name, body }) => writes.push(`${verb} ${name} ${JSON.stringify(body)}`)),
  );
  const west = member("west", client, { candidate: () => candidateNamed("west") });
  startTypes([west], { host, clock });
  await clock.advance(1_000);
  const marks = { labels: { "legation.dev/whole": null }, annotations: { "legation.dev/applied": null } };
  expect(writes).toEqual([`patch one ${JSON.stringify({ metadata: { uid: "m1", ...marks } })}`]);
});

test("cuts messages of conditions, which the API server refuses above a length", async () => {
  const clock = new FakeClock();
  const following = { ...type("1"), spec: { ...spec, definition: "Follow" as const } };
  const messages: Record<string, number> = {};
  const host = quietClient([], {
    list: listing((plural) => {
      if (plural === "delegatedtypes") return [following];
      throw kubeError("Forbidden", "x".repeat(40_000), { verb: "list", resource: plural });
    }),
    ...writing(({ body }) => {
      const { status }: Partial<DelegatedType> = body;
      for (const { type: name, message } of status?.conditions ?? []) messages[name] = message.length;
    }),
  });
  startTypes([], { host, clock });
  await clock.advance(120_000);
  expect(messages).toEqual({ Ready: 4_000, DefinitionFollows: 300 });
});

/** Starts a type with a member whose lists `list` answers. Returns the Ready condition that was written last. */
async function readinessWith(
  list: (pending: () => Promise<never>) => Promise<never>,
): Promise<{ clock: FakeClock; ready: () => unknown }> {
  const clock = new FakeClock();
  let ready: unknown;
  const host = quietClient([], {
    list: listing((plural) => (plural === "delegatedtypes" ? [type("1")] : [])),
    ...writing(({ body }) => {
      const { status }: Partial<DelegatedType> = body;
      const found = status?.conditions?.find((condition) => condition.type === "Ready");
      ready = found && `${found.status} ${found.reason}: ${found.message}`;
    }),
  });
  const listed: ClusterClient["list"] = (_resource, { signal } = {}) =>
    list(
      () =>
        new Promise((_resolve, reject) =>
          signal?.addEventListener("abort", () => reject(signal.reason), { once: true }),
        ),
    );
  const west = member("west", quietClient([], { list: listed }));
  startTypes([west], { host, clock });
  await clock.advance(10_000);
  return { clock, ready: () => ready };
}

test("a type is not Ready while a member cannot list it, also while the next list is pending", async () => {
  let lists = 0;
  const { clock, ready } = await readinessWith(async (pending) => {
    lists += 1;
    if (lists > 3) await pending();
    throw kubeError("ServerError", "conversion webhook failed", { verb: "list", resource: "widgets" });
  });
  await clock.advance(60_000);
  expect(lists).toBe(4);
  expect(ready()).toBe("False NotRead: west: conversion webhook failed");
});

test("a type is Starting while a member's first list is pending", async () => {
  const { ready } = await readinessWith((pending) => pending());
  expect(ready()).toBe("Unknown Starting: objects are being read in west");
});
