import { describe, expect, test } from "vitest";
import type { Secret } from "../../../../src/api/kubernetes.ts";
import { issuedAt } from "../../../../src/certificates/validity.ts";
import { readAuthorities, renewed, trusted } from "../../../../src/controllers/agents/authority.ts";
import { DAY_MS, hubSecret, now } from "./agents-scene.ts";

describe("the hub's authority", () => {
  const secretWith = (data: Record<string, string>): Secret => ({ apiVersion: "v1", kind: "Secret", data });

  test("is renewed in two steps, of which agents trust each result before it is used", async () => {
    const first = readAuthorities(await hubSecret);
    if (first === undefined) throw new Error("no authorities");
    expect(first.addresses).toEqual(["hub.example.org:8132"]);
    const due = now + 2_440 * DAY_MS;
    expect(await renewed(first, due - 20 * DAY_MS)).toBeUndefined();
    const announced = readAuthorities(secretWith((await renewed(first, due)) ?? {}));
    if (announced === undefined) throw new Error("nothing was due");
    expect(announced.current).toEqual(first.current);
    expect(trusted(announced)).toBe(first.current.cert + announced.next?.cert);
    expect(issuedAt(announced.next?.cert ?? "")).toBe(due);
    expect(await renewed(announced, due + 30 * DAY_MS - 1)).toBeUndefined();
    const changed = readAuthorities(secretWith((await renewed(announced, due + 30 * DAY_MS)) ?? {}));
    if (changed === undefined) throw new Error("nothing was due");
    expect(changed.current).toEqual(announced.next);
    expect(changed.next).toBeUndefined();
    // Agents' certificates of the first authority are valid for a while.
    expect(trusted(changed)).toBe(changed.current.cert + first.current.cert);
    expect(await renewed(changed, due + 32 * DAY_MS)).toBeUndefined();
  });

  test.each([
    ["no Secret", undefined],
    ["a Secret without keys", secretWith({})],
    ["a certificate without its key", secretWith({ "ca.crt": "eA==" })],
  ])("is not read from %s", (_name, secret) => {
    expect(readAuthorities(secret)).toBeUndefined();
  });
});
