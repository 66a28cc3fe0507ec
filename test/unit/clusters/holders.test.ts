import { expect, test } from "vitest";
import { type ObjectKey, objectKey } from "../../../src/api/kubernetes.ts";
import { Holders } from "../../../src/clusters/holders.ts";

const key = (name: string): ObjectKey => objectKey({ namespace: "shop", name });

test("names every member that ever had the key, once, until nothing of it is left", () => {
  const holders = new Holders();
  expect(holders.of(key("web"))).toEqual([]);
  holders.note(key("web"), "west");
  holders.note(key("web"), "west");
  holders.note(key("web"), "east");
  holders.note(key("api"), "east");
  expect(holders.of(key("web"))).toEqual(["west", "east"]);
  holders.forget(key("web"));
  expect(holders.of(key("web"))).toEqual([]);
  expect(holders.of(key("api"))).toEqual(["east"]);
});

test("keys of one member share what is kept of it", () => {
  const holders = new Holders();
  holders.note(key("web"), "west");
  holders.note(key("api"), "west");
  expect(holders.of(key("web"))).toBe(holders.of(key("api")));
});
