import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { clusterProxyPath } from "../../../src/api/access.ts";
import type { Cluster } from "../clusters/types.ts";
import type { HostUser } from "./access.ts";

/** An answer of a member to a user of the host. */
export interface Answer {
  readonly method: Method;
  /** 0 if the connection was cut. */
  readonly status: number;
  readonly text: string;
  /** Time of `performance.now()`. */
  readonly askedAt: number;
}

type Method = "GET" | "POST";

const METHODS = ["GET", "POST", "GET", "POST"] as const;
const PAUSE_MS = 20;

/** A user of the host, who lists and creates ConfigMaps in a member through the host's API server. */
export class Asking implements Disposable {
  readonly #host: Cluster;
  readonly #user: HostUser;
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(host: Cluster, user: HostUser, { member, namespace }: { member: string; namespace: string }) {
    this.#host = host;
    this.#user = user;
    this.#url = `${host.server}${clusterProxyPath(member)}/api/v1/namespaces/${namespace}/configmaps`;
  }

  async ask(method: Method): Promise<Answer> {
    const { certificate: cert, key } = this.#user;
    const headers = { "content-type": "application/json" };
    const outgoing = request(this.#url, { method, ca: this.#host.caData, cert, key, agent: this.#agent, headers });
    outgoing.end(method === "GET" ? undefined : JSON.stringify({ metadata: { generateName: "short-" } }));
    // A connection that is cut later fails the reading of the response.
    outgoing.on("error", () => {});
    const askedAt = performance.now();
    try {
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      return { method, status: response.statusCode ?? 0, text: await text(response), askedAt };
    } catch (error) {
      return { method, status: 0, text: String(error), askedAt };
    }
  }

  /** Asks without a pause until the work is done, a few at a time. Returns all answers. */
  async during(work: () => Promise<void>): Promise<Answer[]> {
    const answers: Answer[] = [];
    let working = true;
    const asking = METHODS.map(async (method) => {
      while (working) {
        answers.push(await this.ask(method));
        await sleep(PAUSE_MS);
      }
    });
    await work().finally(() => {
      working = false;
    });
    await Promise.all(asking);
    return answers;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** Reports whether the member did what it was asked. */
export function isSuccess({ status }: Answer): boolean {
  return status === 200 || status === 201;
}
