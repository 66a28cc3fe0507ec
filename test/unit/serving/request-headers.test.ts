import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isIdentityHeader,
  type RequestHeaders,
  requestHeadersOf,
  userOf,
} from "../../../src/serving/request-headers.ts";

const published = {
  "requestheader-allowed-names": '["front-proxy-client"]',
  "requestheader-username-headers": '["X-Remote-User"]',
  "requestheader-uid-headers": '["X-Remote-Uid"]',
  "requestheader-group-headers": '["X-Remote-Group"]',
  "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
};

function headersOf(data: Record<string, string> = published): RequestHeaders {
  const headers = requestHeadersOf(data);
  if (headers === undefined) throw new Error("not readable");
  return headers;
}

test("reads the names that the host publishes, of API servers without uid headers, too", () => {
  const { "requestheader-uid-headers": _, ...older } = published;
  expect(headersOf(older)).toMatchObject({ user: ["x-remote-user"], uid: [], allowedNames: ["front-proxy-client"] });
});

test.each([
  [{}],
  [{ ...published, "requestheader-username-headers": "X-Remote-User" }],
  [{ ...published, "requestheader-group-headers": "{}" }],
])("takes a host without aggregation, or with other content, for one that names nobody: %j", (data) => {
  expect(requestHeadersOf(data)).toBeUndefined();
});

describe("the user of a request", () => {
  test("has the name, uid, groups and extra of the headers, whatever their case", () => {
    const raw = ["x-remote-user", "alice", "X-REMOTE-GROUP", "a", "X-Remote-Group", "b", "X-Remote-Group", "a"];
    const more = ["X-Remote-Uid", "u1", "X-Remote-Extra-Acme.com%2Fteam", "x", "X-Remote-Extra-acme.com%2fteam", "y"];
    expect(userOf([...raw, ...more], headersOf())).toEqual({
      name: "alice",
      uid: "u1",
      groups: ["a", "b"],
      extra: { "acme.com/team": ["x", "y"] },
    });
  });

  test("is read as UTF-8, which Node.js reads as Latin-1", () => {
    const name = Buffer.from("jürgen", "utf8").toString("latin1");
    expect(userOf(["X-Remote-User", name], headersOf())?.name).toBe("jürgen");
  });

  test.each([
    ["without a name", ["X-Remote-Group", "a"]],
    ["with an empty name", ["X-Remote-User", "", "X-Remote-Group", "a"]],
    ["with two names", ["X-Remote-User", "alice", "X-Remote-User", "admin"]],
    ["with two uids", ["X-Remote-User", "alice", "X-Remote-Uid", "1", "X-Remote-Uid", "2"]],
  ])("is nobody %s", (_, raw) => {
    expect(userOf(raw, headersOf())).toBeUndefined();
  });

  test("is not changed by headers of other names, and a Connection header cannot take one away", () => {
    const noise = fc.array(
      fc.tuple(
        fc.constantFrom(
          "Connection",
          "X-Remote-Users",
          "XX-Remote-User",
          "Impersonate-User",
          "X_Remote_User",
          "Cookie",
        ),
        fc.constantFrom("X-Remote-User", "X-Remote-Group", "admin", "system:masters", "close"),
      ),
    );
    fc.assert(
      fc.property(noise, (pairs) => {
        const raw = [...pairs.flat(), "X-Remote-User", "alice", "X-Remote-Group", "a", ...pairs.flat()];
        expect(userOf(raw, headersOf())).toEqual({ name: "alice", groups: ["a"] });
      }),
    );
  });
});

test("knows the headers of identity under the names that the host has chosen", () => {
  const headers = headersOf({ ...published, "requestheader-username-headers": '["X-Who"]' });
  expect(["x-who", "x-remote-extra-any", "x-remote-group"].every((name) => isIdentityHeader(headers, name))).toBe(true);
  expect(isIdentityHeader(headers, "x-remote-user")).toBe(false);
});
