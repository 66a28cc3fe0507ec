import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { forwardedHeaders, withoutHopByHop } from "../../../../src/kube/internal/forward-headers.ts";

const ALICE = { user: "legation:alice", groups: ["legation:a", "legation:b"], extra: {} };

/** Values by name in lower case. */
function valuesOf(headers: readonly string[], wanted: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < headers.length; index += 2) {
    if (headers[index]?.toLowerCase() === wanted) values.push(headers[index + 1] ?? "");
  }
  return values;
}

test("sends end-to-end headers as they came, the credentials, and the user", () => {
  const came = [
    "Accept",
    "application/json",
    "Audit-ID",
    "a1",
    "X-Stream-Protocol-Version",
    "v5",
    "X-Stream-Protocol-Version",
    "v4",
  ];
  const impersonation = { ...ALICE, uid: "u1", extra: { "acme.com/Team %": ["x", "ü"] } };
  expect(forwardedHeaders(came, impersonation, "Bearer own")).toEqual([
    ...came,
    ...["authorization", "Bearer own"],
    ...["impersonate-user", "legation:alice", "impersonate-uid", "u1"],
    ...["impersonate-group", "legation:a", "impersonate-group", "legation:b"],
    ...["impersonate-extra-acme.com%2FTeam%20%25", "x"],
    ...["impersonate-extra-acme.com%2FTeam%20%25", Buffer.from("ü").toString("latin1")],
  ]);
});

test("sends no bearer token that a WebSocket client has among its protocols", () => {
  const bearer = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
  const came = ["Sec-WebSocket-Protocol", `${bearer}, v5.channel.k8s.io`, "Sec-WebSocket-Protocol", bearer];
  const sent = forwardedHeaders(came, ALICE, "Bearer own");
  expect(valuesOf(sent, "sec-websocket-protocol")).toEqual(["v5.channel.k8s.io"]);
});

test("sends nothing without a user", () => {
  expect(() => forwardedHeaders([], { ...ALICE, user: "" }, "Bearer own")).toThrow("needs a user");
});

test("drops hop-by-hop headers, and those that Connection names, of requests and responses", () => {
  const came = [
    "Connection",
    "close, X-Named",
    "Keep-Alive",
    "1",
    "x-named",
    "1",
    "TE",
    "trailers",
    "Upgrade",
    "h2c",
    "Date",
    "now",
  ];
  expect(withoutHopByHop(came)).toEqual(["Date", "now"]);
});

describe("for any headers of a client", () => {
  const name = fc.oneof(
    fc.constantFrom(
      "Authorization",
      "authorization",
      "Cookie",
      "Impersonate-User",
      "IMPERSONATE-GROUP",
      "Impersonate-Extra-Scopes",
    ),
    fc.constantFrom(
      "X-Remote-User",
      "x-remote-group",
      "X-Remote-Extra-A",
      "Impersonate-Uid",
      "Proxy-Authorization",
      "Connection",
    ),
    fc.constantFrom("Transfer-Encoding", "Content-Length", "Host", "Expect", "Upgrade", "Accept"),
  );
  const value = fc.constantFrom(
    "system:masters",
    "admin",
    "Bearer stolen",
    "chunked",
    "Impersonate-User, Impersonate-Group",
    "5",
    "",
  );
  const headers = fc.array(fc.tuple(name, value)).map((pairs) => pairs.flat());

  test("the member sees one identity, which is the user's, and one credential, which is not the client's", () => {
    fc.assert(
      fc.property(headers, (came) => {
        const sent = forwardedHeaders(came, ALICE, "Bearer own");
        expect(valuesOf(sent, "impersonate-user")).toEqual(["legation:alice"]);
        expect(valuesOf(sent, "impersonate-group")).toEqual(["legation:a", "legation:b"]);
        expect(valuesOf(sent, "authorization")).toEqual(["Bearer own"]);
        const names = sent.filter((_, index) => index % 2 === 0).map((each) => each.toLowerCase());
        const others = names.filter(
          (each) => /^(impersonate|x-remote)-/.test(each) && !/^impersonate-(user|group)$/.test(each),
        );
        expect(others).toEqual([]);
        for (const dropped of ["cookie", "connection", "transfer-encoding", "host", "expect", "upgrade"]) {
          expect(names).not.toContain(dropped);
        }
      }),
    );
  });
});
