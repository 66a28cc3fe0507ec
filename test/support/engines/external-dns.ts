import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { z } from "zod";
import type { Cluster } from "../clusters/types.ts";
import { ensurePrograms } from "./programs.ts";
import { startProgram } from "./run.ts";

const MEDIA_TYPE = "application/external.dns.webhook+json;version=1";
const record = z.looseObject({ dnsName: z.string(), recordType: z.string(), targets: z.array(z.string()) });
const changes = z.object({
  create: z.array(record).nullish(),
  updateNew: z.array(record).nullish(),
  delete: z.array(record).nullish(),
});
type DnsRecord = z.infer<typeof record>;

/** A provider of names, by external-dns' webhook protocol (docs/tutorials/webhook-provider.md there). */
class NameProvider {
  readonly #records = new Map<string, DnsRecord>();

  readonly server: Server = createServer(async (request, response) => {
    const body = request.method === "POST" ? await json(request) : undefined;
    const answer = this.#answer(request.url ?? "", body);
    response.writeHead(answer === undefined ? 204 : 200, { "Content-Type": MEDIA_TYPE });
    response.end(answer === undefined ? undefined : JSON.stringify(answer));
  });

  /** Returns the targets of a name, by type of record. */
  lookUp(name: string): Readonly<Record<string, readonly string[]>> {
    const found = [...this.#records.values()].filter(({ dnsName }) => dnsName === name);
    return Object.fromEntries(found.map(({ recordType, targets }) => [recordType, targets.toSorted()]));
  }

  #answer(url: string, body: unknown): unknown {
    if (url === "/adjustendpoints") return body;
    if (url !== "/records") return {};
    if (body === undefined) return [...this.#records.values()];
    const { create, updateNew, delete: gone } = changes.parse(body);
    for (const one of gone ?? []) this.#records.delete(keyOf(one));
    for (const one of [...(create ?? []), ...(updateNew ?? [])]) this.#records.set(keyOf(one), one);
    return undefined;
  }
}

function keyOf({ dnsName, recordType }: DnsRecord): string {
  return `${dnsName} ${recordType}`;
}

/** external-dns, as its project builds it, with a provider of this process. */
export interface ExternalDns {
  lookUp: NameProvider["lookUp"];
  output(): string;
  stop(): Promise<void>;
}

/** Starts external-dns for a cluster: it publishes the names of its Services, Ingresses and HTTPRoutes every second. */
export async function startExternalDns(cluster: Cluster): Promise<ExternalDns> {
  const folder = await ensurePrograms("external-dns", (line) => process.stderr.write(`external-dns: ${line}\n`));
  const provider = new NameProvider();
  const { server } = provider;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the provider of names has no port");
  const args = [
    ...["service", "ingress", "gateway-httproute"].map((source) => `--source=${source}`),
    "--provider=webhook",
    `--webhook-provider-url=http://127.0.0.1:${address.port}`,
    "--registry=noop",
    "--policy=sync",
    "--interval=1s",
    "--min-event-sync-interval=1s",
    "--metrics-address=127.0.0.1:0",
    `--kubeconfig=${cluster.kubeconfig}`,
  ];
  const program = startProgram(join(folder, "external-dns"), args, {
    env: process.env,
    cwd: cluster.directory,
    logFile: join(cluster.directory, "external-dns.log"),
  });
  return {
    lookUp: (name) => provider.lookUp(name),
    output: program.output,
    stop: async () => {
      program.kill("SIGTERM");
      await program.ended;
      server.closeAllConnections();
      server.close();
    },
  };
}
