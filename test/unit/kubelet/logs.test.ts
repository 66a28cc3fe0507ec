import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StreamAnswer, StreamOptions } from "../../../src/kube/client.ts";
import { serveLog } from "../../../src/kubelet/logs.ts";
import { portsFrom } from "../../../src/kubelet/servers.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const PATH = "/containerLogs/shop/web/main";
const READ = { cluster: "west", verb: "get", resource: "pods", namespace: "shop", objectName: "web" } as const;

let asked: StreamOptions[];
let answer: (options: StreamOptions) => Promise<StreamAnswer>;
let lost: string | undefined;
let clock: FakeClock;
/** Looks up the caller's rights. */
let checked: (response: ServerResponse) => Promise<unknown>;
let served: Promise<void>;
let front: ReturnType<typeof createServer>;
let port: number;
beforeEach(async () => {
  asked = [];
  lost = undefined;
  clock = new FakeClock();
  const client = fakeClient({
    stream: (_resource, _ref, _subresource, options) => {
      asked.push(options);
      return answer(options);
    },
  });
  const member = {
    name: "west",
    client,
    get probed() {
      return lost === undefined ? { reachable: true } : { reachable: false, message: lost };
    },
  };
  checked = () => Promise.resolve();
  front = createServer((incoming, response) => {
    const pod = { namespace: "shop", name: "web" };
    served = checked(response).then(() => serveLog(incoming, response, { member, pod, container: "main" }, clock));
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  const address = front.address();
  port = typeof address === "object" && address !== null ? address.port : 0;
});
afterEach(async () => {
  front.closeAllConnections();
  await new Promise((resolve) => front.close(resolve));
});

/** Returns the log as a host's API server gets it; "cut" if it ends abnormally. */
function read(path = PATH): Promise<{ readonly status: number | undefined; readonly text: string } | "cut"> {
  return new Promise((resolve) => {
    const outgoing = request({ port, host: "127.0.0.1", path }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => resolve({ status: response.statusCode, text }));
      response.on("error", () => resolve("cut"));
    });
    outgoing.on("error", () => resolve("cut"));
    outgoing.end();
  });
}

function refusal(status: number, message: string): () => Promise<StreamAnswer> {
  return () => Promise.resolve({ status, headers: {}, text: JSON.stringify({ kind: "Status", message }) });
}

const KUBELET_FORBIDS =
  "Forbidden (user=kube-apiserver-kubelet-client, verb=get, resource=nodes, subresource(s)=[proxy])";

describe("a log", () => {
  test("is requested with the options that a kubelet knows, and no others", async () => {
    answer = () => Promise.resolve({ body: Readable.from(["line\n"]), headers: {} });
    const options = "timestamps=true&tailLines=3&sinceTime=2026-01-01T00%3A00%3A00Z&limitBytes=9&stream=Stderr";
    expect(await read(`${PATH}?${options}&pretty=true&insecureSkipTLSVerifyBackend=true`)).toEqual({
      status: 200,
      text: "line\n",
    });
    expect(asked[0]?.query.toString()).toBe(
      "container=main&timestamps=true&sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=3&limitBytes=9&stream=Stderr",
    );
    expect(asked[0]?.timeoutMs).toBeGreaterThan(0);
  });

  test.each<[string, () => Promise<StreamAnswer>, number, string]>([
    ["a kubelet's words", refusal(400, "container is waiting to start"), 400, "container is waiting to start"],
    [
      "a kubelet's failure, without what every API server puts before it",
      refusal(500, "Internal error occurred: no disk"),
      500,
      "no disk",
    ],
    ["an API server that cannot reach the node", refusal(502, "dial tcp: refused"), 500, "dial tcp: refused"],
    ["a pod that is gone", refusal(404, 'pods "web" not found'), 404, 'pods "web" not found'],
    [
      "rights that Legation lacks",
      refusal(403, 'pods "web" is forbidden: User "legation" cannot get resource "pods/log" in API group ""'),
      500,
      "cluster west refuses Legation (403): an administrator must run `legation join west` again",
    ],
    [
      "a token that the member does not know",
      refusal(401, "Unauthorized"),
      500,
      "cluster west refuses Legation (401): an administrator must run `legation join west` again",
    ],
    [
      "a kubelet that lets its own API server read no logs",
      refusal(403, `${KUBELET_FORBIDS} ( pods/log web)`),
      500,
      `cluster west: its API server may not ask the kubelet there: ${KUBELET_FORBIDS} ( pods/log web)`,
    ],
    [
      "a kubelet that does not know its own API server",
      refusal(401, "the server has asked for the client to provide credentials ( pods/log web)"),
      500,
      "cluster west: its API server may not ask the kubelet there: the server has asked for the client to provide credentials ( pods/log web)",
    ],
    [
      "a login page in front of the member's API server",
      () => Promise.resolve({ status: 401, headers: {}, text: "<html>Unauthorized</html>" }),
      500,
      "cluster west refuses Legation (401): an administrator must run `legation join west` again",
    ],
    ["another's prohibition", refusal(403, "not today"), 500, "cluster west: not today"],
    ["something in between", () => Promise.resolve({ status: 503, headers: {}, text: "<html>" }), 500, "<html>"],
  ])("is refused with the member's status: %s", async (_what, given, status, text) => {
    answer = given;
    expect(await read()).toEqual({ status, text });
  });

  test("is not requested if its reader has left during the lookup of their rights", async () => {
    answer = () => new Promise(() => {});
    const outgoing = request({ port, host: "127.0.0.1", path: `${PATH}?follow=true` });
    outgoing.on("error", () => {});
    checked = (response) => {
      outgoing.destroy();
      return once(response, "close");
    };
    outgoing.end();
    await once(front, "request");
    await served;
    expect(asked).toEqual([]);
  });

  test("is refused while the member does not answer", async () => {
    answer = () => Promise.reject(kubeError("NotSent", "connection refused", READ));
    expect(await read()).toEqual({ status: 500, text: "cluster west did not answer: connection refused" });
  });

  test("waits for its first line without a limit when it is followed, until the member is lost", async () => {
    answer = ({ signal }) =>
      new Promise((_resolve, reject) => {
        const error = kubeError("Aborted", "the caller gave up", READ);
        signal?.addEventListener("abort", () => reject(error));
      });
    const answered = read(`${PATH}?follow=true`);
    await expect.poll(() => asked.length).toBe(1);
    expect(asked[0]?.timeoutMs).toBeUndefined();
    await clock.advance(3_600_000);
    expect(asked[0]?.signal?.aborted).toBe(false);
    lost = "no answer in 5 s";
    await clock.advance(2_000);
    expect(await answered).toEqual({ status: 500, text: "cluster west did not answer: no answer in 5 s" });
    expect(clock.pending).toBe(0);
  });

  test("is given up before its first line when its reader leaves", async () => {
    answer = ({ signal }) => new Promise((_resolve, reject) => signal?.addEventListener("abort", reject));
    const outgoing = request({ port, host: "127.0.0.1", path: `${PATH}?follow=true` });
    outgoing.on("error", () => {});
    outgoing.end();
    await expect.poll(() => asked.length).toBe(1);
    outgoing.destroy();
    await expect.poll(() => asked[0]?.signal?.aborted).toBe(true);
    await served;
    expect(clock.pending).toBe(0);
  });

  test("is cut when the member's connection breaks", async () => {
    const body = new Readable({ read: () => {} });
    answer = () => Promise.resolve({ body, headers: {} });
    const answered = read();
    body.push("half");
    await expect.poll(() => body.readableFlowing).toBe(true);
    body.destroy(new Error("reset"));
    expect(await answered).toBe("cut");
  });
});

test.each<[string, number, number | undefined, (number | undefined)[]]>([
  ["from the first port on", 10_250, undefined, [10_250, 10_251, 10_252]],
  ["the port that the node has had", 10_250, 10_260, [10_260, 10_250, 10_251]],
  ["not one of another configuration", 10_250, 8_080, [10_250, 10_251, 10_252]],
  ["any free one", 0, undefined, [0, undefined, undefined]],
  ["any free one, or the node's", 0, 8_080, [8_080, 0, undefined]],
])("listens on %s", (_what, first, preferred, ports) => {
  const candidates = portsFrom(first, preferred);
  expect(ports.map(() => candidates.next().value)).toEqual(ports);
});
