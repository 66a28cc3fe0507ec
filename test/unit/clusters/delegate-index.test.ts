import { expect, test } from "vitest";
import { type ObjectKey, objectKey } from "../../../src/api/kubernetes.ts";
import { DelegateIndex } from "../../../src/clusters/delegate-index.ts";

const key = (name: string): ObjectKey => objectKey({ namespace: "shop", name });

test("names every member that ever had the key, once, until the key is dropped", () => {
  const index = new DelegateIndex();
  expect(index.of(key("web"))).toEqual([]);
  index.note(key("web"), "west");
  index.note(key("web"), "west");
  index.note(key("web"), "east");
  index.note(key("api"), "east");
  expect(index.of(key("web"))).toEqual(["west", "east"]);
  index.forget(key("web"));
  expect(index.of(key("web"))).toEqual([]);
  expect(index.of(key("api"))).toEqual(["east"]);
});

test("keys of one member share one list", () => {
  const index = new DelegateIndex();
  index.note(key("web"), "west");
  index.note(key("api"), "west");
  expect(index.of(key("web"))).toBe(index.of(key("api")));
});
