import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { anonymous } from "../../support/fault-server/connect.ts";
import { accept, refuse } from "../kube/upgrade-server.ts";
import { answer, KubeletFront, next } from "./kubelet-front.ts";

let kubelet: KubeletFront;
beforeEach(async () => {
  kubelet = await KubeletFront.start();
});
afterEach(() => kubelet.close());

function echo(socket: Duplex): void {
  accept(socket);
  socket.pipe(socket);
}

describe("a stream", () => {
  test("carries the member's answer and then bytes, early ones included", async () => {
    kubelet.member.onUpgrade = (_request, socket) => echo(socket);
    const socket = kubelet.ask("early ");
    expect(await next(socket)).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n.*upgrade: SPDY\/3\.1\r\n.*\r\n\r\n$/is);
    expect(kubelet.member.requests[0]?.url).toBe(
      "/api/v1/namespaces/shop/pods/web/exec?container=main&command=cat&stdin=true&stdout=true",
    );
    expect(await next(socket)).toBe("early ");
    socket.write("late");
    expect(await next(socket)).toBe("late");
    expect(kubelet.streams.size).toBe(1);
    socket.end();
    await expect.poll(() => kubelet.streams.size).toBe(0);
  });
});

describe("a refused stream", () => {
  test("has the words of the member's kubelet", async () => {
    kubelet.member.onUpgrade = (_request, socket) => refuse(socket, 500, 'container not found ("main")');
    const { status, head, body } = await answer(kubelet.ask());
    expect({ status, body }).toEqual({ status: 500, body: 'container not found ("main")' });
    expect(head).toContain("\r\ncontent-type: text/plain\r\n");
    expect(head).toContain("\r\nx-reason: told\r\n");
    expect(head).toContain("\r\ncontent-length: 28");
  });

  test.each([
    [401, "Unauthorized", "InternalError", /cluster west refuses Legation \(401\): .*`legation join west` again/],
    [
      403,
      'pods "web" is forbidden: User "system:serviceaccount:legation-system:host" cannot create resource "pods/exec"',
      "InternalError",
      /cluster west refuses Legation \(403\)/,
    ],
    [403, 'pods "web" is forbidden: no exec into privileged containers', "Forbidden", /no exec into privileged/],
    [404, 'pods "web" not found', "NotFound", /pods "web" not found/],
  ])("of the member's API server with %i %s is %s", async (code, message, reason, expected) => {
    kubelet.member.onUpgrade = (_request, socket) => {
      const status = { kind: "Status", apiVersion: "v1", status: "Failure", message, code, reason };
      refuse(socket, code, JSON.stringify(status));
    };
    expect(JSON.parse((await answer(kubelet.ask())).body)).toMatchObject({
      kind: "Status",
      reason,
      message: expect.stringMatching(expected),
    });
  });

  test.each([
    [401, "Unauthorized"],
    [403, "Forbidden (user=kube-apiserver-kubelet-client, verb=create, resource=nodes, subresource(s)=[proxy])"],
  ])("reports a kubelet that refuses its own API server (%i)", async (code, words) => {
    kubelet.member.onUpgrade = (_request, socket) => refuse(socket, code, words);
    expect(JSON.parse((await answer(kubelet.ask())).body)).toMatchObject({
      reason: "InternalError",
      message: `cluster west: its API server may not ask the kubelet there: ${words}`,
    });
  });

  test("is refused at once if its member is known to be unreachable", async () => {
    kubelet.target = {
      ...kubelet.target,
      member: { ...kubelet.target.member, probed: { reachable: false, message: "timed out" } },
    };
    const { status, body } = await answer(kubelet.ask());
    expect(status).toBe(503);
    expect(JSON.parse(body)).toMatchObject({
      reason: "ServiceUnavailable",
      message: "cluster west cannot be reached: timed out",
    });
    expect(kubelet.member.requests).toEqual([]);
  });

  test.each<[string, number, RegExp, () => void]>([
    [
      "cannot be reached",
      503,
      /cluster west cannot be reached: .*ECONNREFUSED/,
      () => {
        const gone = createClusterClient({ cluster: "west", credentials: anonymous("http://127.0.0.1:1") });
        kubelet.target = { ...kubelet.target, member: { ...kubelet.target.member, client: gone } };
      },
    ],
    [
      "cuts the connection",
      504,
      /cluster west did not answer: /,
      () => {
        kubelet.member.onUpgrade = (_request, socket) => socket.destroy();
      },
    ],
  ])("has the reason if its member %s", async (_case, status, message, arrange) => {
    arrange();
    const refusal = await answer(kubelet.ask());
    expect(refusal.status).toBe(status);
    expect(JSON.parse(refusal.body)).toMatchObject({ kind: "Status", message: expect.stringMatching(message) });
  });
});
