import { expect, test } from "vitest";
import { inMember } from "../../../../src/controllers/copying/writer.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { registryOf } from "../fleet.ts";

function joined() {
  const noted: unknown[] = [];
  const west = member("west", fakeClient({}), { noteFailure: (error) => void noted.push(error) });
  return { noted, west, registry: registryOf([west]) };
}

test("writes in the named member, and nowhere once it has left", async () => {
  const { noted, west, registry } = joined();
  expect(await inMember(registry, "west", async (found) => found === west)).toBe(true);
  expect(await inMember(registry, "east", () => Promise.reject(new Error("not to be asked")))).toBeUndefined();
  expect(noted).toEqual([]);
});

test("reports a failed write to the member and to the caller", async () => {
  const { noted, registry } = joined();
  const error = new Error("no answer");
  await expect(inMember(registry, "west", () => Promise.reject(error))).rejects.toBe(error);
  expect(noted).toEqual([error]);
});
