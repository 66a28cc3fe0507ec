import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CommandConnections } from "../../../../src/cli/shared/connections.ts";
import { openTokenUser } from "../../../../src/cli/ui/token-user.ts";

/** A proxy that leads nowhere, and the addresses that it was asked for. */
async function startProxy() {
  const asked: (string | undefined)[] = [];
  const proxy = createServer();
  proxy.on("connect", ({ url }, socket) => {
    asked.push(url);
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => void proxy.close());
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked };
}

/** Opens a connection to a server as nobody. */
async function connectionTo(server: string, environment: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "legation-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const kubeconfig = join(folder, "kubeconfig");
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "host", cluster: { server } }],
    users: [{ name: "nobody", user: {} }],
    contexts: [{ name: "host", context: { cluster: "host", user: "nobody" } }],
    "current-context": "host",
  };
  writeFileSync(kubeconfig, JSON.stringify(content));
  const connections = new CommandConnections(environment, "test");
  onTestFinished(() => connections.close());
  return await connections.open({ kubeconfig }, "host");
}

test("reaches the host through the proxy of the environment", async () => {
  const { url, asked } = await startProxy();
  const connection = await connectionTo("https://far.example.org:6443", { HTTPS_PROXY: url });
  await expect(openTokenUser(connection, "token", { only: undefined })).rejects.toThrow();
  expect(new Set(asked)).toEqual(new Set(["far.example.org:6443"]));
});

/** A host whose API server knows one user, who may list the pods of these namespaces; `*` stands for all. */
async function startHost(username: string, ...namespaces: readonly string[]) {
  const lists = namespaces.map((name) => (name === "*" ? "/api/v1/pods" : `/api/v1/namespaces/${name}/pods`));
  const server = createServer(({ url = "" }, response) => {
    const path = url.split("?", 1)[0] ?? "";
    const isReview = path.endsWith("/selfsubjectreviews");
    const isAllowed = isReview || lists.includes(path);
    const list = { kind: "List", apiVersion: "v1", metadata: { resourceVersion: "1" }, items: [] };
    const refusal = { kind: "Status", apiVersion: "v1", reason: "Forbidden", code: 403, message: "pods is forbidden" };
    response.writeHead(isAllowed ? 200 : 403, { "content-type": "application/json" });
    response.end(JSON.stringify(isReview ? { status: { userInfo: { username } } } : isAllowed ? list : refusal));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return await connectionTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

const ACCOUNT = "system:serviceaccount:team:reader";

test.each<[string, string, readonly string[], string | undefined, string | undefined]>([
  ["a service account with rights in its namespace alone sees that one", ACCOUNT, ["team"], undefined, "team"],
  ["a user with rights in the context's namespace alone sees that one", "ann", ["default"], undefined, "default"],
  ["a user who names a namespace sees that one", "ann", ["shop"], "shop", "shop"],
  ["a user with rights in all namespaces sees all", ACCOUNT, ["*", "team"], undefined, undefined],
  ["a user without rights is told what is missing in all", ACCOUNT, [], undefined, undefined],
])("%s", async (_, user, namespaces, asked, only) => {
  const connection = await startHost(user, ...namespaces);
  const { viewer, close } = await openTokenUser(connection, "token", { only: asked });
  onTestFinished(close);
  expect(viewer.only).toBe(only);
  expect(viewer.namespace).toBe(only ?? "default");
});
