import { expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { ObjectsInMembers } from "../../../src/copies/objects-in-members.ts";

function object(overrides?: readonly object[]): Stored<AnyObject> {
  const annotations = overrides === undefined ? {} : { "legation.dev/overrides": JSON.stringify(overrides) };
  const metadata = { name: "one", namespace: "team", uid: "u1", resourceVersion: "1", annotations };
  return { metadata, data: { region: "none", keep: "1" } };
}

const region = (value: string): object => ({ op: "replace", path: "/data/region", value });
const west = { name: "west", labels: {} };

test("an object without overrides is the same in all members", () => {
  const one = object();
  expect(new ObjectsInMembers().of(one, west)).toEqual({ state: "present", object: one });
});

test("overrides change the object in their members, in order, and leave the host's as it is", () => {
  const inMembers = new ObjectsInMembers<AnyObject>();
  const one = object([
    { clusters: ["west"], patch: [region("west")] },
    { clusterSelector: "gpu", patch: [region("gpu"), { op: "remove", path: "/data/keep" }] },
  ]);
  expect(inMembers.of(one, west)).toMatchObject({ object: { data: { region: "west", keep: "1" } } });
  expect(inMembers.of(one, { name: "east", labels: {} })).toMatchObject({ object: { data: { region: "none" } } });
  const east = inMembers.of(one, { name: "east", labels: { gpu: "yes" } });
  expect(east).toEqual({ state: "present", object: { ...one, data: { region: "gpu" } } });
  expect(one.data).toEqual({ region: "none", keep: "1" });
});

test("an object is made once for a member, and anew when the member's labels change", () => {
  const inMembers = new ObjectsInMembers<AnyObject>();
  const one = object([{ clusterSelector: "gpu", patch: [region("gpu")] }]);
  const given = inMembers.of(one, west);
  expect(inMembers.of(one, { name: "west", labels: {} })).toBe(given);
  expect(inMembers.of(one, { name: "west", labels: { gpu: "yes" } })).not.toBe(given);
});

test("an override that does not fit is told, and gives the member no object", () => {
  const one = object([{ patch: [{ op: "test", path: "/data/region", value: "eu" }] }]);
  expect(new ObjectsInMembers().of(one, west)).toEqual({
    state: "unknown",
    message: "legation.dev/overrides: [0].patch[0]: test /data/region: the object has another value there",
  });
});

test("an object is given to all members without the host's fields, and overrides come after", () => {
  const inMembers = new ObjectsInMembers<AnyObject>(({ keep: _, ...rest }) => ({ ...rest, metadata: rest.metadata }));
  const plain = { ...object(), keep: "host" };
  expect(inMembers.of(plain, west)).toEqual({ state: "present", object: object() });
  expect(inMembers.of(plain, west)).toMatchObject({ object: { data: { region: "none" } } });
  const patch = [{ op: "add", path: "/keep", value: "west" }];
  expect(inMembers.of({ ...object([{ patch }]), keep: "host" }, west)).toMatchObject({ object: { keep: "west" } });
});
