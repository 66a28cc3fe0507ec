import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { webhookCommand } from "../../../../src/cli/webhook/command.ts";
import { connection, recordedSession } from "../session.ts";

async function listening(port: number): Promise<Server> {
  const server = createServer().listen(port, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return server;
}

test("closes the metrics port when the webhook cannot start", async () => {
  const probe = await listening(0);
  const address = probe.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  probe.close();
  await once(probe, "close");

  const input = webhookCommand.input.parse({
    listen: "127.0.0.1:0",
    metricsListen: `127.0.0.1:${port}`,
    tlsCertFile: "/nowhere/tls.crt",
    tlsKeyFile: "/nowhere/tls.key",
  });
  const running = webhookCommand.run(input, recordedSession({ connect: async () => connection() }));

  await expect(running).rejects.toThrow("/nowhere/tls.crt");
  await expect(listening(port)).resolves.toBeDefined();
});
