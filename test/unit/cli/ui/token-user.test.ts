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

test("reaches the host through the proxy of the environment", async () => {
  const { url, asked } = await startProxy();
  const folder = mkdtempSync(join(tmpdir(), "legation-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const kubeconfig = join(folder, "kubeconfig");
  const content = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "host", cluster: { server: "https://far.example.org:6443" } }],
    users: [{ name: "nobody", user: {} }],
    contexts: [{ name: "host", context: { cluster: "host", user: "nobody" } }],
    "current-context": "host",
  };
  writeFileSync(kubeconfig, JSON.stringify(content));
  const connections = new CommandConnections({ HTTPS_PROXY: url }, "test");
  onTestFinished(() => connections.close());
  const connection = await connections.open({ kubeconfig }, "host");
  await expect(openTokenUser(connection, "token", { only: undefined })).rejects.toThrow();
  expect(new Set(asked)).toEqual(new Set(["far.example.org:6443"]));
});
