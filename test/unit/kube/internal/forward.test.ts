import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import type { ForwardedRequest, Forwarder } from "../../../../src/kube/client.ts";
import { createForwarder } from "../../../../src/kube/http-client.ts";
import { anonymous, kubeErrorOf } from "../../../support/fault-server/connect.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A forwarder to a server that answers so, and the paths that it was asked for. */
async function forwarderTo(answer: Answer): Promise<{ readonly forwarder: Forwarder; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    answer(request, response);
  });
  server.on("upgrade", (_request, socket) => {
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const forwarder = createForwarder({ cluster: "west", credentials: anonymous(`http://127.0.0.1:${port}`) });
  onTestFinished(async () => {
    await forwarder.close();
    server.closeAllConnections();
    server.close();
  });
  return { forwarder, asked };
}

function requestOf(parts: Partial<ForwardedRequest> = {}): ForwardedRequest {
  const impersonation = { user: "legation:alice", groups: [], extra: {} };
  const { signal } = new AbortController();
  return { method: "GET", path: "/version", headers: [], impersonation, signal, ...parts };
}

/** A body of which the sender has written a part, and knows the end. */
function upload(): Readable & { readonly failed: () => boolean } {
  const body = new PassThrough();
  body.write("{");
  body.on("error", () => {});
  return Object.assign(body, { failed: () => body.destroyed });
}

test("takes the final answer for the answer, after any information that precedes it", async () => {
  const { forwarder } = await forwarderTo((_request, response) => {
    response.writeEarlyHints({ link: "</a>; rel=preload" });
    response.writeHead(404, { "content-type": "text/plain" }).end("none");
  });
  const { status, body } = await forwarder.forward(requestOf());
  expect([status, await text(body)]).toEqual([404, "none"]);
});

test("says of a change whose answer was lost that it may have happened, and ends its body", async () => {
  const { forwarder } = await forwarderTo((request) => request.once("data", () => request.socket.destroy()));
  const body = upload();
  const error = await kubeErrorOf(forwarder.forward(requestOf({ method: "POST", path: "/api/v1/pods", body })));
  expect(error).toMatchObject({ code: "AnswerLost", verb: "create", objectName: "/api/v1/pods" });
  expect(body.failed()).toBe(true);
});

test("ends the body of a request that cannot be sent, as nobody reads it", async () => {
  const { forwarder, asked } = await forwarderTo((_request, response) => void response.end());
  const nobody = { user: "", groups: [], extra: {} };
  const body = upload();
  const error = await kubeErrorOf(forwarder.forward(requestOf({ method: "POST", impersonation: nobody, body })));
  expect(error).toMatchObject({ code: "NotSent", detail: expect.stringContaining("needs a user") });
  expect(body.failed()).toBe(true);
  expect(asked).toEqual([]);
});

test("sends nothing for a client that has gone already", async () => {
  const { forwarder, asked } = await forwarderTo((_request, response) => void response.end());
  const body = upload();
  const gone = requestOf({ method: "POST", body, signal: AbortSignal.abort() });
  expect((await kubeErrorOf(forwarder.forward(gone))).code).toBe("Aborted");
  expect([body.failed(), asked]).toEqual([true, []]);
});

test("cuts the stream of a client that goes while it reads", async () => {
  const client = new AbortController();
  const { forwarder } = await forwarderTo((_request, response) => void response.write("first"));
  const { body } = await forwarder.forward(requestOf({ path: "/watch", signal: client.signal }));
  body.once("data", () => client.abort());
  await expect(text(body)).rejects.toThrow();
});

test("returns the refusal of an upgrade as an answer, with its words", async () => {
  const server = await forwarderTo(() => {});
  const refusing = createServer();
  refusing.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"));
  refusing.listen(0, "127.0.0.1");
  await once(refusing, "listening");
  onTestFinished(() => void refusing.close());
  const { port } = refusing.address() as AddressInfo;
  const forwarder = createForwarder({ cluster: "west", credentials: anonymous(`http://127.0.0.1:${port}`) });
  expect(await forwarder.upgrade(requestOf({ path: "/exec" }), "x")).toMatchObject({ status: 403 });
  await forwarder.close();
  expect(server.asked).toEqual([]);
});

test("cuts an upgraded stream when it closes", async () => {
  const { forwarder } = await forwarderTo(() => {});
  const answer = await forwarder.upgrade(requestOf({ path: "/exec" }), "x");
  if (!("socket" in answer)) throw new Error("no upgrade");
  const closed = once(answer.socket, "close");
  await forwarder.close();
  await closed;
});
