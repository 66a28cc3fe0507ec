import { spawn } from "node:child_process";
import dns, { type LookupAddress } from "node:dns";
import { once } from "node:events";
import { createConnection } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import type { ClusterCredentials } from "../../../../src/kube/credentials.ts";
import { createClusterClient } from "../../../../src/kube/http-client.ts";

type Answer = (error: Error | null, found: readonly LookupAddress[]) => void;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Replaces `dns.lookup`, which is asked for all addresses of a name. */
function replaceLookup(answering: (host: string, answer: Answer) => void) {
  return vi.spyOn(dns, "lookup").mockImplementation((...asked: readonly unknown[]) => {
    const [host, , answer] = asked as [string, object, Answer];
    answering(host, answer);
  });
}

/** Calls of the replaced `dns.lookup`: host and callback of each. */
function lookups(): { readonly host: string; readonly answer: Answer }[] {
  const asked: { host: string; answer: Answer }[] = [];
  replaceLookup((host, answer) => asked.push({ host, answer }));
  return asked;
}

function clientOf(server: string, more: Partial<ClusterCredentials> = {}, connectTimeoutMs = 5_000): ClusterClient {
  const credentials = { source: "test", insecureSkipTlsVerify: false, identity: () => ({}), refresh: () => {} };
  const client = createClusterClient({
    cluster: "west",
    credentials: { server, ...credentials, ...more },
    limits: { connectTimeoutMs },
  });
  onTestFinished(() => client.close());
  return client;
}

test.each<[string, string, Partial<ClusterCredentials>]>([
  ["itself", "west.example", {}],
  ["by a proxy", "proxy.example", { proxyUrl: "http://proxy.example:3128" }],
  ["by a SOCKS proxy", "socks.example", { proxyUrl: "socks5://socks.example:1080" }],
])("looks an unanswered name up once at a time, for a cluster reached %s", async (_, host, more) => {
  const asked = lookups();
  const west = clientOf("https://west.example:6443", more, 100);
  const ask = (): Promise<unknown> => west.raw({ method: "GET", path: "/readyz", timeoutMs: 150 }).catch(() => {});
  for (let round = 0; round < 3; round += 1) await Promise.all(Array.from({ length: 8 }, ask));
  expect(asked.map((lookup) => lookup.host)).toEqual([host]);
  // Errors and answers are not cached.
  for (const lookup of asked) lookup.answer(new Error("no such name"), []);
  await ask();
  expect(asked).toHaveLength(2);
});

// The first packets are lost, as on a long or bad way: nobody takes connections, until there is room for no more.
const SERVER = `
  require("node:http").createServer((_, response) => response.setHeader("content-type", "application/json").end("{}"))
    .listen({ port: 0, host: "127.0.0.1", backlog: 1 }, function () { console.log(this.address().port); });
`;

test("reaches a name by its slow first address when the second leads nowhere", async () => {
  const server = spawn(process.execPath, ["-e", SERVER], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void server.kill("SIGKILL"));
  const port = Number(String((await once(server.stdout, "data"))[0]));
  server.kill("SIGSTOP");
  const waiting = Array.from({ length: 4 }, () => createConnection({ host: "127.0.0.1", port }));
  for (const socket of waiting) onTestFinished(() => void socket.destroy());
  await sleep(100);
  const lookup = replaceLookup((_host, answer) => {
    answer(null, [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 },
    ]);
  });
  const answer = clientOf(`http://east.example:${port}`).raw({ method: "GET", path: "/readyz" });
  // Before the first packet is sent again, and after the time that Node by itself gives an address.
  setTimeout(() => server.kill("SIGCONT"), 700);
  expect(await answer).toEqual({});
  // By its first connection: where the way is always that long, there is no other.
  expect(lookup).toHaveBeenCalledOnce();
});
