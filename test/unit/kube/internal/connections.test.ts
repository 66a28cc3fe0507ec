import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createSecureServer } from "node:http2";
import { connect as connectTcp, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { ClusterClient, Dial } from "../../../../src/kube/client.ts";
import type { ClusterCredentials } from "../../../../src/kube/credentials.ts";
import { createClusterClient } from "../../../../src/kube/http-client.ts";
import type { ClientLimits } from "../../../../src/kube/limits.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { kubeErrorOf } from "../../../support/fault-server/connect.ts";
import { answerJson, FaultServer } from "../../../support/fault-server/fault-server.ts";
import { authority, certificateOf, credentialsFor, people, serving } from "./people.ts";

let server: FaultServer;
const clients: ClusterClient[] = [];
const helpers: Server[] = [];
beforeEach(async () => {
  server = await FaultServer.start({ tls: { key: serving.key, cert: serving.certificate, ca: authority.pem } });
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const helper of helpers.splice(0)) helper.close();
  await server.stop();
});

function connect(
  options: Partial<ClusterCredentials> = {},
  limits: Partial<ClientLimits> = {},
  way?: Dial,
): ClusterClient {
  const client = createClusterClient({
    cluster: "west",
    limits,
    dial: way,
    credentials: credentialsFor(server.url, options),
  });
  clients.push(client);
  return client;
}

/** Lets every request say whose certificate it came with. */
function tellNames(): string[] {
  const names: string[] = [];
  server.always = (_request, response) => {
    const { socket } = response;
    if (socket !== null && "getPeerCertificate" in socket && typeof socket.getPeerCertificate === "function") {
      names.push(socket.getPeerCertificate().subject.CN);
    }
    return false;
  };
  return names;
}

async function listening(helper: Server): Promise<number> {
  helpers.push(helper);
  await new Promise<void>((resolve) => helper.listen(0, "127.0.0.1", resolve));
  const address = helper.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

const foreign = (): Partial<ClusterCredentials> => ({
  identity: () => ({ ...certificateOf("jane"), ca: people.john.certificate }),
});
const misnamed = (): Partial<ClusterCredentials> => ({ tlsServerName: "other.example" });
const dial: Dial = async () => connectTcp(Number(new URL(server.url).port), "127.0.0.1");

describe("TLS", () => {
  test("presents the client certificate", async () => {
    const names = tellNames();
    await connect().list(pods);
    expect(names).toEqual(["jane"]);
  });

  test("uses a new client certificate from the next request on, while a watch keeps the old one", async () => {
    const names = tellNames();
    let name: "jane" | "john" = "jane";
    const client = connect({ identity: () => certificateOf(name) });
    const events = client
      .watch(pods, { resourceVersion: "1", signal: new AbortController().signal })
      [Symbol.asyncIterator]();
    const first = events.next();
    await expect.poll(() => server.openWatches).toBe(1);
    name = "john";
    await client.list(pods);
    server.world.put({ kind: "Pod", metadata: { name: "a" } });
    expect((await first).value).toMatchObject({ type: "ADDED" });
    expect(names).toEqual(["jane", "john"]);
    await events.return?.();
  });

  test.each([
    ["an authority that the client does not trust", foreign],
    ["a name that is not in its certificate", misnamed],
  ])("sends nothing to a server with %s", async (_case, options) => {
    const error = await kubeErrorOf(connect(options()).create(pods, { metadata: { name: "a" } }));
    expect(error.code).toBe("NotSent");
    expect(server.requests).toEqual([]);
  });

  test.each<[string, () => Partial<ClusterCredentials>, Dial | undefined, number]>([
    ["loads the identity anew after a dialled server presents a certificate of another authority", foreign, dial, 1],
    ["keeps it after a dialled server presents a certificate of another name", misnamed, dial, 0],
    ["keeps it after a server that is not dialled presents one of another authority", foreign, undefined, 0],
  ])("%s", async (_case, options, way, times) => {
    let loads = 0;
    const refresh = (): void => {
      loads += 1;
    };
    const failing = connect({ ...options(), refresh }, {}, way);
    expect((await kubeErrorOf(failing.create(pods, { metadata: { name: "a" } }))).code).toBe("NotSent");
    expect(loads).toBe(times);
  });

  test("verifies the server by `tls-server-name`", async () => {
    await expect(connect({ tlsServerName: "api.example" }).list(pods)).resolves.toBeDefined();
  });

  test("trusts the system's CAs without a CA of its own", async () => {
    const folder = await mkdtemp(join(tmpdir(), "legation-authorities-"));
    const bundle = join(folder, "authorities.pem");
    await writeFile(bundle, authority.pem);
    const { cert, key } = certificateOf("jane");
    const { href } = new URL("../../../../src/kube/http-client.ts", import.meta.url);
    const credentials = { server: server.url, source: "test", insecureSkipTlsVerify: false };
    // The system's authorities are read once in a process.
    const script = `
      import { createClusterClient } from ${JSON.stringify(href)};
      const credentials = { ...${JSON.stringify(credentials)}, identity: () => (${JSON.stringify({ cert, key })}) };
      const client = createClusterClient({ cluster: "west", credentials });
      await client.raw({ method: "GET", path: "/api/v1/pods" });
      await client.close();`;
    const child = promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      env: { ...process.env, SSL_CERT_FILE: bundle },
    });
    await expect(child).resolves.toMatchObject({ stderr: "" });
    expect(server.requests).toHaveLength(1);
    await rm(folder, { recursive: true });
  });

  test("skips verification when insecure", async () => {
    const { cert = "", key = "" } = certificateOf("jane");
    await connect({ insecureSkipTlsVerify: true, identity: () => ({ cert, key }) }).list(pods);
    expect(server.requests).toHaveLength(1);
  });
});

describe("a server URL with a path", () => {
  test("is the prefix of every request", async () => {
    server.always = (_request, response) => {
      answerJson(response, 200, { metadata: { resourceVersion: "1" }, items: [] });
      return true;
    };
    await connect({ server: `${server.url}/k8s/clusters/c-1` }).list(pods, { namespace: "a" });
    expect(server.requests[0]?.path).toBe("/k8s/clusters/c-1/api/v1/namespaces/a/pods");
  });
});

describe("requests through a proxy", () => {
  test("use CONNECT of an HTTP proxy, watches too", async () => {
    const asked: (string | undefined)[] = [];
    const proxy = createHttpServer();
    proxy.on("connect", (request, socket) => {
      asked.push(request.url);
      const upstream = connectTcp(Number(request.url?.split(":")[1]), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [socket, upstream]) end.on("error", () => {});
    });
    const client = connect({ proxyUrl: `http://127.0.0.1:${await listening(proxy)}` });
    await client.list(pods);
    server.world.put({ kind: "Pod", metadata: { name: "a" } });
    for await (const event of client.watch(pods, { resourceVersion: "1", signal: new AbortController().signal })) {
      expect(event.type).toBe("ADDED");
      break;
    }
    expect(asked).toEqual(Array(2).fill(new URL(server.url).host));
  });

  test("use the environment's proxy if the kubeconfig names none", async () => {
    const proxy = createHttpServer();
    proxy.on("connect", (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"));
    const client = connect({ environmentProxyUrl: `http://127.0.0.1:${await listening(proxy)}` });
    expect((await kubeErrorOf(client.create(pods, { metadata: { name: "a" } }))).code).toBe("NotSent");
    expect(server.requests).toEqual([]);
  });

  test("reject with NotSent when the proxy refuses", async () => {
    const proxy = createHttpServer();
    proxy.on("connect", (_request, socket) => socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"));
    const client = connect({ proxyUrl: `http://127.0.0.1:${await listening(proxy)}` });
    expect((await kubeErrorOf(client.create(pods, { metadata: { name: "a" } }))).code).toBe("NotSent");
    expect(server.requests).toEqual([]);
  });

  test("hold a slot no longer than the connect timeout when the proxy is silent", async () => {
    let heard = 0;
    const proxy = createHttpServer();
    const silent = (_request: IncomingMessage, socket: Duplex): void => {
      heard += 1;
      socket.on("error", () => {});
    };
    proxy.on("connect", silent);
    const short = { timeoutMs: 2_000, connectTimeoutMs: 1_000 };
    const client = connect({ proxyUrl: `http://127.0.0.1:${await listening(proxy)}` }, short);
    const creations = Array.from({ length: 80 }, () => kubeErrorOf(client.create(pods, { metadata: { name: "a" } })));
    const codes = (await Promise.all(creations)).map(({ code }) => code);
    expect(new Set(codes)).toEqual(new Set(["NotSent"]));
    expect(heard).toBeGreaterThan(1);
    proxy.off("connect", silent).on("connect", (request, socket) => {
      const upstream = connectTcp(Number(request.url?.split(":")[1]), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [socket, upstream]) end.on("error", () => {});
    });
    const startedAt = performance.now();
    await client.list(pods, { timeoutMs: 10_000 });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  test("have a connection each through an HTTPS proxy that prefers HTTP/2, with its user and password", async () => {
    const before = getCACertificates("default");
    setDefaultCACertificates([...before, authority.pem]);
    onTestFinished(() => setDefaultCACertificates(before));
    const asked: unknown[] = [];
    const proxy = createSecureServer({ allowHTTP1: true, cert: serving.certificate, key: serving.key });
    proxy.on("connect", (request: IncomingMessage, socket: Duplex) => {
      asked.push([request.httpVersion, request.headers["proxy-authorization"]]);
      const upstream = connectTcp(Number(request.url?.split(":")[1]), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [socket, upstream]) end.on("error", () => {});
    });
    const url = `https://jane:p%40ss@127.0.0.1:${await listening(proxy)}`;
    const client = connect({ environmentProxyUrl: url });
    await client.list(pods);
    const authorization = `Basic ${Buffer.from("jane:p@ss").toString("base64")}`;
    expect(asked).toEqual([["1.1", authorization]]);
  });

  test("use a SOCKS5 proxy", async () => {
    let tunnels = 0;
    const proxy = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        socket.write(Buffer.from([5, 0]));
        socket.once("data", (request) => {
          tunnels += 1;
          const upstream = connectTcp(request.readUInt16BE(request.length - 2), "127.0.0.1", () => {
            socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]));
            upstream.pipe(socket).pipe(upstream);
          });
          upstream.on("error", () => {});
        });
      });
    });
    await connect({ proxyUrl: `socks5://127.0.0.1:${await listening(proxy)}` }).list(pods);
    expect([tunnels, server.requests.length]).toEqual([1, 1]);
  });
});
