import { expect, onTestFinished, test } from "vitest";
import type { AnyObject, DelegatedType } from "../../../../src/api/delegated-type.ts";
import type { KubeObject, Stored } from "../../../../src/api/kubernetes.ts";
import { TypesController } from "../../../../src/controllers/whole/types-controller.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { delegatedKind } from "../../../../src/copies/objects.ts";
import type { ClusterClient, WatchOptions } from "../../../../src/kube/client.ts";
import { customResourceDefinitions, type Resource } from "../../../../src/kube/resources.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { answeringMember, surroundings } from "../fleet.ts";
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
    ...(surroundings(members, clock) as object),
    host,
    rules: { parse: () => ({ ok: true, placement: {} }), namespaceLabels: () => ({}) },
    restoredHost: {},
  } as never);
  onTestFinished(() => controller.stop());
  controller.start();
}

test("follows the objects of a type that was deleted and created anew while the watch was cut", async () => {
  const clock = new FakeClock();
  let types: readonly KubeObject[] = [type("1", { deletionTimestamp: "2026-01-01T00:00:00Z" })];
  const cut = Promise.withResolvers<never>();
  const patched: string[] = [];
  const host = quietClient([], {
    list: (async ({ plural }: Resource<KubeObject>) => ({
      items: plural === "delegatedtypes" ? types : [widget],
      resourceVersion: "1",
      size: 0,
    })) as never,
    watch: async function* ({ plural }: Resource<KubeObject>, { signal, onOpen }: WatchOptions) {
      onOpen?.();
      const ended = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await (plural === "delegatedtypes" ? Promise.race([ended, cut.promise]) : ended);
    } as never,
    patch: (async ({ plural }: Resource<KubeObject>, _ref: object, { body }: { body: object }) => {
      patched.push(`${plural} ${JSON.stringify(body)}`);
      return { metadata: { resourceVersion: "2" } };
    }) as never,
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
      list: (async ({ plural }: Resource<KubeObject>) => ({
        items: plural === "delegatedtypes" ? [type("1")] : [object],
        resourceVersion: "1",
        size: 0,
      })) as never,
      find: async () => undefined,
      patch: async () => ({ metadata: {} }) as never,
    });
    const writes: string[] = [];
    const note =
      (verb: string) =>
      async (_resource: unknown, { name }: { name: string }) => {
        writes.push(`${verb} ${name}`);
        return { metadata: {} };
      };
    const client = quietClient([copy], { patch: note("patch") as never, delete: note("delete") as never });
    const candidate = () => ({ name: "west", labels: {} });
    const west = answeringMember("west", client, { candidate });
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
    list: (async (resource: Resource<KubeObject>) => ({
      items: resource.plural === "delegatedtypes" ? [ofDefinitions] : [taken],
      resourceVersion: "1",
      size: 0,
    })) as never,
    find: async () => undefined,
    patch: async () => ({ metadata: {} }) as never,
  });
  const writes: string[] = [];
  const note =
    (verb: string) =>
    async (_resource: unknown, { name }: { name: string }, sent: { body?: object } = {}) => {
      writes.push(`${verb} ${name} ${JSON.stringify(sent.body)}`);
      return { metadata: {} };
    };
  const client = quietClient([copy], { patch: note("patch") as never, delete: note("delete") as never });
  const west = answeringMember("west", client, { candidate: () => ({ name: "west", labels: {} }) });
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
    list: (async ({ plural }: Resource<KubeObject>) => {
      if (plural !== "delegatedtypes")
        throw kubeError("Forbidden", "x".repeat(40_000), { verb: "list", resource: plural });
      return { items: [following], resourceVersion: "1", size: 0 };
    }) as never,
    patch: (async (_resource: object, _ref: object, { body }: { body: Pick<DelegatedType, "status"> }) => {
      for (const { type: name, message } of body.status?.conditions ?? []) messages[name] = message.length;
      return { metadata: {} };
    }) as never,
  });
  startTypes([], { host, clock });
  await clock.advance(120_000);
  expect(messages).toEqual({ Ready: 4_000, DefinitionFollows: 300 });
});

/** Starts a type with a member whose lists `list` answers. Returns the Ready condition that was written last. */
async function readinessWith(
  list: (pending: () => Promise<never>) => Promise<unknown>,
): Promise<{ clock: FakeClock; ready: () => unknown }> {
  const clock = new FakeClock();
  let ready: unknown;
  const host = quietClient([], {
    list: (async ({ plural }: Resource<KubeObject>) => ({
      items: plural === "delegatedtypes" ? [type("1")] : [],
      resourceVersion: "1",
      size: 0,
    })) as never,
    patch: (async (_resource: object, _ref: object, { body }: { body: Pick<DelegatedType, "status"> }) => {
      const found = body.status?.conditions?.find((condition) => condition.type === "Ready");
      ready = found && `${found.status} ${found.reason}: ${found.message}`;
      return { metadata: {} };
    }) as never,
  });
  const listed = (_resource: object, { signal }: { readonly signal: AbortSignal }) =>
    list(
      () =>
        new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
        ),
    );
  const west = answeringMember("west", quietClient([], { list: listed as never }), {});
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
