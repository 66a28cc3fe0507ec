import { describe, expect, test } from "vitest";
import { streamRequest } from "../../../src/kubelet/streams-request.ts";

/** A request as Node's server has parsed it. */
function request(method: string, url: string, rawHeaders: readonly string[] = []) {
  return { method, url, rawHeaders: [...rawHeaders], headers: { connection: "Upgrade", upgrade: "SPDY/3.1" } };
}

describe("a stream's request", () => {
  test.each([
    [
      "/exec/shop/web/main?command=sh&command=-c&command=echo+a%26b&input=1&output=1&error=1",
      "exec?container=main&command=sh&command=-c&command=echo+a%26b&stdin=true&stdout=true&stderr=true",
    ],
    [
      "/exec/shop/web/0a1b/main?command=sh&input=1&output=1&tty=1",
      "exec?container=main&command=sh&stdin=true&stdout=true&tty=true",
    ],
    // Only 1 is true to a kubelet, and an absent option false to an API server.
    ["/exec/shop/web/main?command=sh&output=true&error=0&tty=", "exec?container=main&command=sh"],
    ["/attach/shop/web/main?input=1&output=1", "attach?container=main&stdin=true&stdout=true"],
    ["/portForward/shop/web", "portforward?"],
    ["/portForward/shop/web?port=80%2C443&port=8080", "portforward?ports=80%2C443&ports=8080"],
    // A question mark in a query need not be encoded.
    [
      "/exec/shop/web/main?command=ls&command=a?b&command=c&output=1",
      "exec?container=main&command=ls&command=a%3Fb&command=c&stdout=true",
    ],
    // Options that no kubelet knows are not passed on.
    [
      "/exec/shop/web/main?command=sh&output=1&container=other&stdin=true",
      "exec?container=main&command=sh&stdout=true",
    ],
  ])("turns %s into %s in the member", (url, expected) => {
    const asked = streamRequest(request("POST", url), "main");
    if ("problem" in asked) throw new Error(asked.problem);
    expect(`${asked.subresource}?${asked.query}`).toBe(expected);
    expect(asked).toMatchObject({ method: "POST", protocol: "SPDY/3.1" });
  });

  test("passes on the headers that negotiate the protocol, line by line, and no others", () => {
    const { headers } = streamed([
      ...["Host", "10.0.0.1", "Connection", "Upgrade", "Upgrade", "websocket", "Cookie", "a=b"],
      ...["Authorization", "Bearer host", "Impersonate-User", "root", "X-Forwarded-For", "10.0.0.2"],
      ...["X-Stream-Protocol-Version", "v4.channel.k8s.io", "X-Stream-Protocol-Version", "v3.channel.k8s.io"],
      ...["Sec-WebSocket-Protocol", "v4.channel.k8s.io", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "a2V5"],
    ]);
    expect(headers).toEqual({
      "x-stream-protocol-version": ["v4.channel.k8s.io", "v3.channel.k8s.io"],
      "sec-websocket-protocol": ["v4.channel.k8s.io"],
      "sec-websocket-version": ["13"],
      "sec-websocket-key": ["a2V5"],
    });
  });

  test.each([
    ["POST", "/run/shop/web/main?cmd=ls", /^\/run\/shop\/web\/main is no stream/],
    ["POST", "//", /^\/\/ is no stream/],
    ["DELETE", "/exec/shop/web/main", /^DELETE opens no stream/],
  ])("is refused as %s %s", (method, url, problem) => {
    expect(streamRequest(request(method, url), "main")).toEqual({ problem: expect.stringMatching(problem) });
  });

  test("is refused without a protocol", () => {
    const plain = { ...request("POST", "/exec/shop/web/main"), headers: {} };
    expect(streamRequest(plain, "main")).toEqual({ problem: "Upgrade request required" });
  });
});

function streamed(rawHeaders: readonly string[]) {
  const asked = streamRequest(request("GET", "/exec/shop/web/main?command=sh", rawHeaders), "main");
  if ("problem" in asked) throw new Error(asked.problem);
  return asked;
}
