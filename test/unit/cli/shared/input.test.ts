import { describe, expect, test } from "vitest";
import { duration, everyAddress, listenAddress } from "../../../../src/cli/shared/input.ts";

describe("a duration", () => {
  test.each([
    ["90", 90_000],
    ["90s", 90_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["500ms", 500],
  ])("parses %s as %d ms", (text, expected) => {
    expect(duration.parse(text)).toBe(expected);
  });

  test.each(["", "0", "-1s", "1d", "1 m", "m"])("refuses %j", (text) => {
    expect(duration.safeParse(text).success).toBe(false);
  });
});

describe("an address to listen on", () => {
  test.each([
    ["127.0.0.1:8443", { host: "127.0.0.1", port: 8443 }],
    ["[::1]:8443", { host: "::1", port: 8443 }],
    ["localhost:1", { host: "127.0.0.1", port: 1 }],
    [":8443", { host: everyAddress(), port: 8443 }],
  ])("parses %s", (text, expected) => {
    expect(listenAddress.parse(text)).toEqual(expected);
  });

  test("takes :: as every address, and 0.0.0.0 on a machine without IPv6", () => {
    const rest = { netmask: "", mac: "", internal: true, cidr: null };
    const ipv4 = { ...rest, family: "IPv4" as const, address: "127.0.0.1" };
    const ipv6 = { ...rest, family: "IPv6" as const, address: "::1", scopeid: 0 };
    expect(everyAddress({ lo: [ipv4, ipv6] })).toBe("::");
    expect(everyAddress({ lo: [ipv4] })).toBe("0.0.0.0");
  });

  test.each(["8443", "::1:8443", "127.0.0.1:65536", "127.0.0.1:", "https://h:1"])("refuses %j", (text) => {
    expect(listenAddress.safeParse(text).success).toBe(false);
  });
});
