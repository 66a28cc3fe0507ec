import { expect, test } from "vitest";
import { inMember } from "../../../../src/controllers/copying/writer.ts";

function west() {
  const noted: unknown[] = [];
  const member = { noteFailure: (error: unknown) => void noted.push(error) };
  const registry = { member: (name: string) => (name === "west" ? member : undefined) } as never;
  return { noted, member, registry };
}

test("writes in the named member, and nowhere once it has left", async () => {
  const { noted, member, registry } = west();
  expect(await inMember(registry, "west", async (found) => found === (member as unknown))).toBe(true);
  expect(await inMember(registry, "east", () => Promise.reject(new Error("not to be asked")))).toBeUndefined();
  expect(noted).toEqual([]);
});

test("reports a failed write to the member and to the caller", async () => {
  const { noted, registry } = west();
  const error = new Error("no answer");
  await expect(inMember(registry, "west", () => Promise.reject(error))).rejects.toBe(error);
  expect(noted).toEqual([error]);
});
