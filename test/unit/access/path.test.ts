import { posix } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { targetOf } from "../../../src/access/path.ts";

const CLUSTERS = "/apis/access.legation.dev/v1/clusters";

test.each([
  [`${CLUSTERS}/west/proxy`, "/"],
  [`${CLUSTERS}/west/proxy/`, "/"],
  [`${CLUSTERS}/west/proxy?timeout=1s`, "/?timeout=1s"],
  [`${CLUSTERS}/west/proxy/api/v1/pods?watch=true&a=b?c`, "/api/v1/pods?watch=true&a=b?c"],
  [`${CLUSTERS}/west/proxy/api/v1/namespaces/a/configmaps/b%3Ac`, "/api/v1/namespaces/a/configmaps/b%3Ac"],
  [`${CLUSTERS}/west/proxy/apis/..data/v1/x.y/a..b`, "/apis/..data/v1/x.y/a..b"],
  [`${CLUSTERS}/west/proxy/proxy/proxy`, "/proxy/proxy"],
])("sends %s on as %s", (url, path) => {
  expect(targetOf(url)).toEqual({ cluster: "west", path });
});

test.each([
  ["/../east/proxy", "has the segment . or .."],
  ["/api/./v1", "has the segment . or .."],
  ["/..", "has the segment . or .."],
  ["//api", "has two slashes in a row"],
  ["/api//v1", "has two slashes in a row"],
  ["/api/%2e%2e/v1", "has an escaped slash, backslash, dot or NUL"],
  ["/api/%2E./v1", "has an escaped slash, backslash, dot or NUL"],
  ["/api/a%2Fb", "has an escaped slash, backslash, dot or NUL"],
  ["/api/a%252fb", "has an escaped slash, backslash, dot or NUL"],
  ["/api/a%25252Fb", "has an escaped slash, backslash, dot or NUL"],
  ["/api/a%252%65", "has an escaped slash, backslash, dot or NUL"],
  ["/api/a%2525252525b", "is escaped too often"],
  ["/api/a%5cb", "has an escaped slash, backslash, dot or NUL"],
  ["/api/a%00", "has an escaped slash, backslash, dot or NUL"],
  ["/api\\v1", "has a backslash, or a character that must be escaped"],
  ["/api#v1", "has a backslash, or a character that must be escaped"],
  ["/api v1", "has a backslash, or a character that must be escaped"],
  ["/api/%zz", "has a % that begins no escape: write %25"],
  ["/api/%", "has a % that begins no escape: write %25"],
])("refuses %s behind /proxy, and says why", (path, problem) => {
  expect(targetOf(`${CLUSTERS}/west/proxy${path}`)).toEqual({ problem: `the path behind /proxy ${problem}` });
});

test.each([
  `${CLUSTERS}/west`,
  `${CLUSTERS}/west/proxyx`,
  `${CLUSTERS}/west/status`,
  `${CLUSTERS}//proxy`,
  `${CLUSTERS}/`,
  `${CLUSTERS}/we%73t/proxy/api`,
  `${CLUSTERS}/west%2fproxy/api`,
  `${CLUSTERS}/West/proxy/api`,
  `${CLUSTERS}/../proxy/api`,
  `${CLUSTERS}/./proxy/api`,
])("refuses %s, which names no Cluster in the one form", (url) => {
  expect(targetOf(url)).toHaveProperty("problem");
});

describe("for any path", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "/",
      ".",
      "..",
      "%2e",
      "%2F",
      "%252e",
      "%25",
      "2",
      "e",
      "%65",
      "\\",
      "//",
      "proxy",
      "west",
      "?",
      "#",
      "%",
      "%00",
      ";",
      "api",
    ),
    fc.string({ maxLength: 3 }),
  );
  const anyUrl = fc.array(piece, { maxLength: 12 }).map((pieces) => `${CLUSTERS}/west/proxy${pieces.join("")}`);

  test("sends a part of the path that came, which stays below the member's root however often it is unescaped", () => {
    fc.assert(
      fc.property(anyUrl, (url) => {
        const target = targetOf(url);
        if (target.problem !== undefined) return;
        expect(target.cluster).toBe("west");
        const [path = ""] = target.path.split("?");
        expect(path.startsWith("/")).toBe(true);
        expect(url.slice(`${CLUSTERS}/west/proxy`.length)).toBe(
          url.includes("/proxy/") || path !== "/" ? target.path : target.path.slice(1),
        );
        let read = path;
        for (let times = 0; times < 6; times += 1) {
          expect(posix.normalize(read).split("/")).toHaveLength(read.split("/").length);
          expect(read).not.toMatch(/[\\\0]|\/\.\.?(\/|$)/);
          read = decodeOnce(read);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

function decodeOnce(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
