import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readAll } from "../../support/streams/socket-pair.ts";
import { accept, refuse } from "../kube/upgrade-server.ts";
import { answer, KubeletFront, next } from "../kubelet/kubelet-front.ts";

let kubelet: KubeletFront;
beforeEach(async () => {
  kubelet = await KubeletFront.start();
});
afterEach(() => kubelet.close());

describe("a stream", () => {
  test("ends in the member if the client goes before it is open", async () => {
    const arrived = Promise.withResolvers<Duplex>();
    kubelet.member.onUpgrade = (_request, socket) => arrived.resolve(socket);
    const socket = kubelet.ask();
    await arrived.promise;
    socket.resetAndDestroy();
    await expect.poll(() => kubelet.member.sockets.size).toBe(0);
    expect(kubelet.streams.size).toBe(0);
  });

  test("ends normally for the client when the member's connection is given up", async () => {
    kubelet.member.onUpgrade = (_request, socket) => accept(socket, "so far");
    const all = readAll(kubelet.ask());
    await expect.poll(() => kubelet.streams.size).toBe(1);
    await kubelet.client.close();
    expect(String(await all)).toMatch(/so far$/);
    await expect.poll(() => kubelet.streams.size).toBe(0);
  });

  test("ends on both sides when Legation stops, and is not opened afterwards", async () => {
    const open = readAll(kubelet.ask());
    await expect.poll(() => kubelet.streams.size).toBe(1);
    const silent = Promise.withResolvers<void>();
    kubelet.member.onUpgrade = () => silent.resolve();
    const opening = answer(kubelet.ask());
    await silent.promise;
    const closed = kubelet.streams.close();
    expect(String(await open)).toMatch(/^HTTP\/1\.1 101/);
    expect(await opening).toMatchObject({ status: 503, body: expect.stringContaining("is stopping: try again") });
    await closed;
    await expect.poll(() => kubelet.member.sockets.size).toBe(0);
    expect(await answer(kubelet.ask())).toMatchObject({ status: 503 });
    expect(kubelet.member.requests).toHaveLength(2);
  });
});

describe("a refused stream", () => {
  test("ends soon, whether the client ends its side or not", async () => {
    kubelet.member.onUpgrade = (_request, socket) => refuse(socket, 500, "no");
    const socket = kubelet.ask("", { allowHalfOpen: true });
    expect(await next(socket)).toMatch(/^HTTP\/1\.1 500/);
    const open = (): Promise<number> =>
      new Promise((resolve) => kubelet.front.getConnections((_error, count) => resolve(count)));
    expect(await open()).toBe(1);
    await kubelet.clock.advance(5_000);
    await expect.poll(open).toBe(0);
  });
});
