import { expect, test } from "vitest";
import { isDefinitionLost, leaveSlices } from "../../../../../src/controllers/whole/objects/left-behind.ts";
import { services } from "../../../../../src/kube/resources.ts";
import { answering, listing, writing } from "../../../../support/builders/answers.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";

const [EARLIER, LATER] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
const WIDGETS = { group: "example.com", version: "v1", plural: "widgets", kind: "Widget", namespaced: true };

test.each<[string, boolean, object | undefined, boolean]>([
  ["an object that its author deletes", false, { creationTimestamp: EARLIER }, true],
  ["an object that is gone", false, { creationTimestamp: EARLIER }, false],
  ["an object whose definition is being deleted", true, { creationTimestamp: EARLIER, deletionTimestamp: LATER }, true],
  ["an object that went with an earlier definition", true, { creationTimestamp: LATER }, false],
  ["an object that its author gave anew with the definition, and deletes", false, { creationTimestamp: LATER }, true],
  ["an object of an aggregated API", false, undefined, false],
])("%s went with its definition: %s", async (_, expected, definition, isOfFound) => {
  const host = fakeClient({
    find: definition === undefined ? async () => undefined : answering({ metadata: definition }),
  });
  const copy = { metadata: { name: "one", uid: "m1", resourceVersion: "1", creationTimestamp: EARLIER } };
  const { signal } = new AbortController();
  expect(await isDefinitionLost(host, { resource: WIDGETS, copy, isOfFound, signal })).toBe(expected);
});

test("leaves a Service its copied EndpointSlices, and what a client derived from one as it is", async () => {
  const labels = { "legation.dev/host": "host-id", "legation.dev/copy": "true" };
  const owner = JSON.stringify({ cluster: "cern", namespace: "team", name: "db-1", uid: "u1" });
  const slice = (name: string, annotations: Record<string, string>): object => ({
    metadata: { namespace: "team", name, uid: `uid-of-${name}`, resourceVersion: "1", labels, annotations },
  });
  const marked = { "legation.dev/owner": owner };
  const items = [slice("db-1", marked), slice("derived", marked), slice("db-2", {})];
  const patched: string[] = [];
  const client = fakeClient({
    list: listing(items),
    ...writing(({ name }) => patched.push(name)),
  });
  const copy = { metadata: { namespace: "team", name: "db", uid: "m1", resourceVersion: "1", labels } };
  await leaveSlices({ client, resource: services, copy, signal: new AbortController().signal });
  expect(patched).toEqual(["db-1", "db-2"]);
});
