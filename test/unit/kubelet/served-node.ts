import { type Agent, request } from "node:https";
import { onTestFinished } from "vitest";
import { ALL_NAMESPACES } from "../../../src/api/shards.ts";
import { Authentication } from "../../../src/kubelet/authentication.ts";
import { NodeServer } from "../../../src/kubelet/node-server.ts";
import { Streams } from "../../../src/kubelet/streams.ts";
import { Store } from "../../../src/runtime/store.ts";
import { AccessReviews } from "../../../src/serving/access-reviews.ts";
import type { TlsMaterial } from "../../../src/serving/certified-server.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { Authority, type KeyAndCertificate } from "../../support/clusters/pki.ts";

const log = createLogger({ level: "silent" });
export const STREAM = { path: "/exec/shop/web/main", headers: { connection: "Upgrade", upgrade: "SPDY/3.1" } };

/** What the host's authority has issued, and another one. */
interface Pki {
  readonly authority: Authority;
  readonly other: Authority;
  readonly serving: TlsMaterial["certificate"];
  /** The certificate of the host's API server. */
  readonly caller: KeyAndCertificate;
}

// Keys take longer than most tests.
let pki: Promise<Pki> | undefined;

async function createPki(): Promise<Pki> {
  const [authority, other] = await Promise.all([Authority.create("host"), Authority.create("other")]);
  const made = await authority.issue({ commonName: "node", usage: "serverAuth", addresses: ["127.0.0.1"] });
  const caller = await authority.issue({ commonName: "api-server", organization: "trusted", usage: "clientAuth" });
  return { authority, other, serving: { cert: made.certificate, key: made.key }, caller };
}

/** The server of a virtual node, and the host that it asks. */
export class ServedNode {
  readonly authority: Authority;
  readonly other: Authority;
  readonly serving: TlsMaterial["certificate"];
  readonly caller: KeyAndCertificate;
  /** All that the host was asked. */
  readonly reviews: object[] = [];
  hostAnswers = true;
  tokenStatus: object = { authenticated: false };
  isAllowed = true;
  /** Delays the host's answers. */
  hostsWait: Promise<void> | undefined;
  readonly clock: FakeClock = new FakeClock(Date.now());
  server: NodeServer | undefined;
  port = 0;

  private constructor({ authority, other, serving, caller }: Pki) {
    this.authority = authority;
    this.other = other;
    this.serving = serving;
    this.caller = caller;
  }

  static async create(): Promise<ServedNode> {
    pki ??= createPki();
    return new ServedNode(await pki);
  }

  nodeServer(clientAuthority: string | undefined): NodeServer {
    const host = fakeClient({
      raw: async ({ path, body = {} }) => {
        if (!this.hostAnswers) {
          throw kubeError("NotSent", "connection refused", { cluster: "host", resource: "raw" });
        }
        this.reviews.push(body);
        await this.hostsWait;
        return path.endsWith("tokenreviews") ? { status: this.tokenStatus } : { status: { allowed: this.isAllowed } };
      },
    });
    const { clock } = this;
    const proxies = new Store<object>();
    return new NodeServer(
      "west",
      { certificate: this.serving, clientAuthority },
      {
        source: {
          registry: { member: () => undefined, problem: () => undefined },
          proxies,
          proxiesOn: () => [],
          shard: ALL_NAMESPACES,
        },
        authentication: new Authentication({ host, clock }),
        reviews: new AccessReviews({ host, clock, allowedLifetimeMs: 300_000, deniedLifetimeMs: 30_000 }),
        streams: new Streams({ clock, log }),
        clock,
        log,
      },
    );
  }

  async serve(clientAuthority: string | undefined): Promise<void> {
    const server = this.nodeServer(clientAuthority);
    this.server = server;
    this.port = await server.listen("127.0.0.1", 0);
    onTestFinished(() => server.close());
  }

  ask(
    options: { certificate?: KeyAndCertificate; agent?: Agent; token?: string; path?: string; headers?: object } = {},
  ): Promise<number> {
    const { certificate, agent, token, path = "/healthz", headers = {} } = options;
    return new Promise((resolve, reject) => {
      const asked = request(
        {
          host: "127.0.0.1",
          port: this.port,
          path,
          rejectUnauthorized: false,
          ...(agent === undefined ? {} : { agent }),
          ...(certificate === undefined ? {} : { cert: certificate.certificate, key: certificate.key }),
          headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
        },
        (response) => {
          response.resume();
          response.on("end", () => resolve(response.statusCode ?? 0));
        },
      );
      asked.on("error", reject);
      asked.end();
    });
  }
}
