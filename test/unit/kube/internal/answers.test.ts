import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { connect, kubeErrorOf } from "../../../support/fault-server/connect.ts";
import { FaultServer, line } from "../../../support/fault-server/fault-server.ts";
import { flood, stream } from "../../../support/fault-server/faults.ts";

const MEBIBYTE = 2 ** 20;
const web: Pod = { apiVersion: "v1", kind: "Pod", metadata: { namespace: "default", name: "web" } };
let server: FaultServer;
let client: ClusterClient;
const abort = new AbortController();
beforeEach(async () => {
  server = await FaultServer.start();
  client = connect(server, { untrusted: true });
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

async function watched(): Promise<void> {
  for await (const _event of client.watch(pods, { resourceVersion: "1", signal: abort.signal }));
}

describe("an untrusted server that sends without end", () => {
  test("is cut off within its responses together", { timeout: 90_000 }, async () => {
    flood(server, "x".repeat(MEBIBYTE));
    const options = { timeoutMs: 60_000 };
    const answers = [client.list(pods, options), client.get(pods, { name: "web" }, options)];
    const both = await Promise.all(answers.map((answer) => kubeErrorOf(answer)));
    for (const error of both) {
      expect(error).toMatchObject({
        code: "AnswerLost",
        detail: expect.stringContaining(`larger than ${64 * MEBIBYTE}`),
      });
    }
    server.always = undefined;
    // The held bytes are free again.
    expect((await client.list(pods)).items).toEqual([]);
  });

  test("is cut off when a short response takes much memory once parsed", async () => {
    const podIPs = `"podIPs":[${"{},".repeat(MEBIBYTE)}{}]`;
    server.always = (_request, response) => {
      response.end(`{"metadata":{"name":"web","uid":"u","resourceVersion":"1"},"status":{${podIPs}}}`);
      return true;
    };
    const answers = [client.get(pods, { name: "web" }), client.raw({ method: "GET", path: "/version" })];
    for (const error of await Promise.all(answers.map(kubeErrorOf))) {
      expect(error).toMatchObject({ code: "AnswerLost", detail: expect.stringContaining("larger than") });
    }
    server.always = undefined;
    server.faults.push(stream(`{"type":"ADDED","object":{${podIPs}}}\n`, "end"));
    expect(await kubeErrorOf(watched())).toMatchObject({ code: "BadAnswer", detail: expect.stringContaining("takes") });
  });
});

describe("an untrusted server with invalid responses", () => {
  test("has objects with fields of wrong types rejected", async () => {
    server.faults.push(stream(line("ADDED", { ...web, metadata: { ...web.metadata, labels: [] } }), "end"));
    expect(await kubeErrorOf(watched())).toMatchObject({ code: "BadAnswer" });
    server.world.put({ ...web, ...{ spec: { containers: "none" } } });
    const listed = await kubeErrorOf(client.list(pods));
    expect(listed).toMatchObject({ code: "BadAnswer", detail: "default/web has fields of wrong types" });
    expect(await kubeErrorOf(client.get(pods, { namespace: "default", name: "web" }))).toMatchObject({
      code: "BadAnswer",
    });
  });
});
