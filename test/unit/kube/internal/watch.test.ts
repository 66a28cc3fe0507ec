import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient, WatchEvent, WatchOptions } from "../../../../src/kube/client.ts";
import { heapBytesOf } from "../../../../src/kube/json.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { connect, kubeErrorOf } from "../../../support/fault-server/connect.ts";
import { answerStatus, FaultServer, line } from "../../../support/fault-server/fault-server.ts";
import { cut, refuse, silence, stream } from "../../../support/fault-server/faults.ts";

const web: Pod = { apiVersion: "v1", kind: "Pod", metadata: { namespace: "default", name: "web" } };
const stored = { ...web, metadata: { ...web.metadata, uid: "u", resourceVersion: "7" } };

let server: FaultServer;
let client: ClusterClient;
let abort: AbortController;
beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server, { limits: { timeoutMs: 2_000 } });
  abort = new AbortController();
});
afterEach(async () => {
  abort.abort();
  await client.close();
  await server.stop();
});

async function collect(options: Partial<WatchOptions> = {}, into: WatchEvent<Pod>[] = []): Promise<WatchEvent<Pod>[]> {
  for await (const event of client.watch(pods, { resourceVersion: "1", signal: abort.signal, ...options }))
    into.push(event);
  return into;
}

describe("a watch", () => {
  test("requests bookmarks and a timeout", async () => {
    server.faults.push(stream("", "end"));
    await collect({ namespace: "default", labelSelector: "a=b", timeoutSeconds: 9 });
    expect(Object.fromEntries(server.requests[0]?.query ?? [])).toEqual({
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: "1",
      timeoutSeconds: "9",
      labelSelector: "a=b",
    });
  });

  test("yields events with unknown fields and long integers intact", async () => {
    const text = `${line("ADDED", stored).trimEnd().slice(0, -2)},"x":{"n":9007199254740993,"ü":[{}]}}}\n`;
    server.faults.push(stream(text, "end"));
    const [event] = await collect();
    expect(event).toHaveProperty("size", heapBytesOf(text.trimEnd()));
    expect(`${JSON.stringify({ ...event, size: undefined })}\n`).toBe(text);
  });

  test("leaves out an unwanted namespace without parsing its events", async () => {
    // As API servers write a pod: its kind first, its name before its namespace.
    const written = (namespace: string, generateName: object, rest: string): string =>
      `${JSON.stringify({ type: "ADDED", object: { kind: "Pod", apiVersion: "v1", metadata: { name: "web", ...generateName, namespace, uid: "u", resourceVersion: "7" } } }).slice(0, -2)}${rest}\n`;
    const text =
      written("unwanted", {}, ",not JSON") +
      written("unwanted", { generateName: "we" }, ",not JSON") +
      written("wanted", {}, "}}") +
      line("ADDED", { ...stored, metadata: { ...stored.metadata, namespace: "in another order" } });
    server.faults.push(stream(text, "end"));
    const events = await collect({ isWanted: (namespace) => namespace === "wanted" });
    expect(events.map((event) => "object" in event && event.object.metadata.namespace)).toEqual([
      "wanted",
      "in another order",
    ]);
  });

  test("yields bookmarks", async () => {
    const annotations = { "k8s.io/initial-events-end": "true" };
    const text =
      line("BOOKMARK", { metadata: { resourceVersion: "8" } }) +
      line("BOOKMARK", { metadata: { resourceVersion: "9", annotations } });
    server.faults.push(stream(text, "end"));
    expect(await collect()).toEqual([
      { type: "BOOKMARK", resourceVersion: "8" },
      { type: "BOOKMARK", resourceVersion: "9" },
    ]);
  });

  test("carries an object of 1.5 MB", async () => {
    const big = { ...stored, metadata: { ...stored.metadata, annotations: { a: "ä".repeat(750_000) } } };
    server.faults.push(stream(line("MODIFIED", big), "end"));
    const text = line("MODIFIED", big);
    expect(await collect()).toEqual([{ type: "MODIFIED", object: big, size: heapBytesOf(text.trimEnd()) }]);
  });

  test("makes the server wait without a reader, and loses nothing", async () => {
    const big = { ...stored, metadata: { ...stored.metadata, annotations: { a: "x".repeat(1_000_000) } } };
    const event = line("MODIFIED", big);
    let unsent = (): number => 0;
    server.faults.push((_request, response) => {
      response.writeHead(200);
      for (let count = 0; count < 40; count += 1) response.write(event);
      response.end();
      unsent = () => response.writableLength;
      return true;
    });
    let read = 0;
    for await (const _event of client.watch(pods, { resourceVersion: "1", signal: abort.signal })) {
      if (read === 0) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        expect(unsent()).toBeGreaterThan(20_000_000);
      }
      read += 1;
    }
    expect(read).toBe(40);
  });
});

describe("a watch ends with", () => {
  test.each([
    ["410 at its opening", refuse(410, "Expired"), "Gone"],
    ["410 in its middle", stream(line("ADDED", stored) + line("ERROR", status(410, "Expired")), "end"), "Gone"],
    ["an expired version reported as 500", stream(line("ERROR", status(500, "Expired")), "end"), "Gone"],
    ["another error of the server", stream(line("ERROR", status(500, "InternalError")), "end"), "ServerError"],
    ["403 at its opening", refuse(403, "Forbidden"), "Forbidden"],
    ["a cut before the answer", cut, "AnswerLost"],
    ["a cut between events", stream(line("ADDED", stored), "cut"), "AnswerLost"],
    ["an end inside an event", stream(line("ADDED", stored).slice(0, 40), "end"), "AnswerLost"],
    ["a line that is not JSON", stream("{]\n", "end"), "BadAnswer"],
    ["an event of an unknown type", stream(line("SURPRISE", stored), "end"), "BadAnswer"],
    ["an event without an object", stream('{"type":"ADDED"}\n', "end"), "BadAnswer"],
    ["an opening that is never answered", silence, "AnswerLost"],
  ] as const)("%s", async (_case, fault, code) => {
    server.faults.push(fault);
    const error = await kubeErrorOf(collect());
    expect(error).toMatchObject({ code, cluster: "west", verb: "watch", resource: "pods" });
    await expect.poll(() => server.openWatches).toBe(0);
  });

  test("NotSent without a server", async () => {
    await server.stop();
    expect((await kubeErrorOf(collect())).code).toBe("NotSent");
    await server.listen();
  });

  test("AnswerLost after the idle timeout", async () => {
    server.faults.push(stream(line("ADDED", stored), "silence"));
    const seen: WatchEvent<Pod>[] = [];
    const error = await kubeErrorOf(collect({ idleTimeoutMs: 100 }, seen));
    expect(seen).toHaveLength(1);
    expect(error.code).toBe("AnswerLost");
    expect(error.detail).toMatch(/^silent for \d+ ms$/);
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test("Aborted when the caller aborts, and closes its connection", async () => {
    setTimeout(() => abort.abort(), 50);
    expect((await kubeErrorOf(collect())).code).toBe("Aborted");
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test("no error when its consumer stops, and closes its connection", async () => {
    server.world.put(web);
    for await (const event of client.watch(pods, { resourceVersion: "1", signal: abort.signal })) {
      expect(event.type).toBe("ADDED");
      break;
    }
    await expect.poll(() => server.sockets.size).toBe(0);
  });
});

test("outlives its idle timeout while bookmarks arrive", async () => {
  setTimeout(() => abort.abort(), 4_500);
  const timer = setInterval(() => server.bookmark(), 100);
  const seen: WatchEvent<Pod>[] = [];
  expect((await kubeErrorOf(collect({ idleTimeoutMs: 3_000 }, seen))).code).toBe("Aborted");
  clearInterval(timer);
  expect(seen.length).toBeGreaterThan(4);
});

test("refreshes the credentials after a 401", async () => {
  let token = "old";
  const identity = (): { authorization: string } => ({ authorization: token });
  const refresh = (): void => {
    token = "new";
  };
  const renewed = connect(server, {
    credentials: { server: server.url, source: "test", insecureSkipTlsVerify: false, identity, refresh },
  });
  server.always = ({ headers }, response) => {
    if (headers.authorization === "new") return false;
    answerStatus(response, 401, "Unauthorized", "Unauthorized");
    return true;
  };
  server.world.put(web);
  for await (const event of renewed.watch(pods, { resourceVersion: "1", signal: abort.signal })) {
    expect(event.type).toBe("ADDED");
    break;
  }
  await renewed.close();
});

function status(code: number, reason: string): object {
  return { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: reason };
}
