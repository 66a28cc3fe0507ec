import { describe, expect, test } from "vitest";
import { environmentProxy } from "../../../src/kube/environment-proxy.ts";

const proxy = "http://proxy.example:3128";

describe("the environment's proxy", () => {
  test.each<[string, string, Record<string, string>, string | undefined]>([
    ["none is named", "https://api.example", {}, undefined],
    ["none but for http is named", "https://api.example", { HTTP_PROXY: proxy }, undefined],
    ["HTTPS_PROXY is for https", "https://api.example", { HTTPS_PROXY: proxy }, proxy],
    ["HTTP_PROXY is for http", "http://api.example", { HTTP_PROXY: proxy }, proxy],
    ["it may be written in lower case", "https://api.example", { https_proxy: proxy, HTTPS_PROXY: "" }, proxy],
    ["it may lack its scheme", "https://api.example", { HTTPS_PROXY: "proxy.example:3128" }, proxy],
    ["a name of this machine is not proxied", "https://localhost:6443", { HTTPS_PROXY: proxy }, undefined],
    ["an address of this machine is not proxied", "https://127.1.2.3:6443", { HTTPS_PROXY: proxy }, undefined],
    ["nor is its IPv6 one", "https://[::1]:6443", { HTTPS_PROXY: proxy }, undefined],
  ])("%s", (_case, server, env, expected) => {
    expect(environmentProxy(server, env)).toBe(expected);
  });

  test.each<[string, string, boolean]>([
    ["*", "https://api.example", true],
    ["api.example", "https://api.example", true],
    ["API.example", "https://api.example.", true],
    ["example", "https://api.example", true],
    ["ample", "https://api.example", false],
    [".api.example", "https://api.example", false],
    ["*.example", "https://api.example", true],
    [" other.example , .example", "https://api.example", true],
    ["api.example:443", "https://api.example", true],
    ["api.example:6443", "https://api.example", false],
    ["10.0.0.1", "https://10.0.0.1:6443", true],
    ["10.0.0.1:6443", "https://10.0.0.1:6443", true],
    ["10.0.0.1:443", "https://10.0.0.1:6443", false],
    ["10.0.0.0/8", "https://10.1.2.3", true],
    ["10.0.0.0/8", "https://11.1.2.3", false],
    ["10.0.0.0/33", "https://10.1.2.3", false],
    ["10.0.0.0/8", "https://api.example", false],
    ["2001:db8::1", "https://[2001:db8::1]:6443", true],
    ["[2001:db8::1]:6443", "https://[2001:db8::1]:6443", true],
    ["[2001:db8::1]", "https://[2001:db8::1]:6443", true],
    ["2001:db8::/32", "https://[2001:db8::1]:6443", true],
  ])("NO_PROXY=%s for %s: %s", (noProxy, server, isDirect) => {
    const env = { HTTPS_PROXY: proxy, NO_PROXY: noProxy };
    expect(environmentProxy(server, env)).toBe(isDirect ? undefined : proxy);
  });

  test("is rejected without its password when it is invalid", () => {
    const env = { HTTPS_PROXY: "ftp://user:secret@proxy.example" };
    expect(() => environmentProxy("https://api.example", env)).toThrow(
      "config: load HTTPS_PROXY: not a proxy; write a URL with http, https or socks5, or unset it",
    );
  });
});
