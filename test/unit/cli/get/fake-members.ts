import { runProgram } from "../../../../src/cli/program.ts";
import type { ReadingClient } from "../../../../src/cli/shared/session.ts";
import type { TableOptions } from "../../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import type { TableEvent, TablePage } from "../../../../src/kube/tables.ts";
import { discoveryDocument, type TypeServed } from "../../../support/builders/discovery.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { type FakeMethods, fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, type RecordedSession, recordedSession } from "../session.ts";
import { podPage } from "./pages.ts";

const TYPES: readonly TypeServed[] = [
  { plural: "pods", kind: "Pod", shortNames: ["po"] },
  { group: "apps", plural: "deployments", kind: "Deployment", shortNames: ["deploy"] },
];

const STATUS: Partial<Record<KubeErrorCode, number>> = { Forbidden: 403, NotFound: 404, Gone: 410, ServerError: 503 };

/** A member that serves pods and deployments, as the access API shows it. */
export class FakeMember {
  readonly client: ReadingClient;
  /** Pages of each list; a page is its rows' `namespace/name`. */
  pages: readonly (readonly string[])[] = [[]];
  /** Fails every request while it is set. */
  failure: KubeErrorCode | undefined;
  lacksPods = false;
  /** Refuses lists of all namespaces. */
  isOneNamespaceAlone = false;
  /** Leaves requests without an answer. */
  hangs = false;
  readonly lists: TableOptions[] = [];
  /** The rest of the watch that is open. */
  watching: { readonly tell: (event: TableEvent) => void; readonly end: (code?: KubeErrorCode) => void } | undefined;

  constructor(name: string) {
    this.client = {
      ...fakeClient({
        cluster: name,
        raw: async ({ path, signal }) => {
          await this.#answer(name, signal);
          if (path === "/api" && this.lacksPods) return { kind: "APIGroupDiscoveryList", items: [] };
          return path === "/api" || path === "/apis" ? discoveryDocument(path, TYPES) : {};
        },
      }),
      listTable: async (_resource, options) => {
        this.lists.push(options);
        await this.#answer(name, options.signal);
        if (this.isOneNamespaceAlone && options.namespace === undefined) throw this.#error(name, "Forbidden");
        return this.#page(name, options);
      },
      watchTable: (_resource, { signal }) => this.#watch(name, signal),
    };
  }

  #page(cluster: string, { name, continue: token = "0" }: TableOptions): TablePage {
    const index = Number(token);
    const rows = this.pages[index] ?? [];
    if (name !== undefined) {
      const found = rows.filter((row) => row.split("/")[1] === name);
      if (found.length === 0) throw this.#error(cluster, "NotFound");
      return podPage(found);
    }
    return podPage(rows, index + 1 < this.pages.length ? { continue: String(index + 1) } : {});
  }

  async #answer(name: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.hangs) {
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
      throw this.#error(name, "Aborted");
    }
    if (this.failure !== undefined) throw this.#error(name, this.failure);
  }

  #error(cluster: string, code: KubeErrorCode): KubeError {
    const status = STATUS[code];
    return new KubeError(`${code} it said`, {
      cluster,
      verb: "list",
      resource: "pods",
      code,
      ...(status === undefined ? {} : { status }),
    });
  }

  async *#watch(name: string, signal: AbortSignal): AsyncGenerator<TableEvent> {
    if (this.failure !== undefined) throw this.#error(name, this.failure);
    const queue: (TableEvent | KubeErrorCode | "end")[] = [];
    let wake = (): void => undefined;
    const push = (next: (typeof queue)[number]): void => {
      queue.push(next);
      wake();
    };
    this.watching = { tell: push, end: (code) => push(code ?? "end") };
    signal.addEventListener("abort", () => push("Aborted"));
    for (;;) {
      const next = queue.shift();
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if (next === "end") return;
      else if (typeof next === "string") throw this.#error(name, next);
      else yield next;
    }
  }
}

/** Lists on a host by an account with rights in namespace `shop` alone, which has a pod in west. */
export const IN_SHOP_ALONE: FakeMethods["list"] = async ({ plural }, { namespace } = {}) => {
  if (namespace !== "shop")
    throw new KubeError("no", { cluster: "host", verb: "list", resource: plural, code: "Forbidden" });
  const items = plural === "pods" ? [proxyPod({ spec: { nodeName: "legation-west" } })] : [];
  return { items, resourceVersion: "1", size: 1 };
};

/** A session of a host with these members, whose access API is served. */
export function sessionWith(
  members: Readonly<Record<string, FakeMember>>,
  signal: AbortSignal = new AbortController().signal,
  ownList?: FakeMethods["list"],
): RecordedSession {
  const clusters = Object.keys(members).map((name) => ({
    metadata: { name, uid: name, resourceVersion: "1", labels: { region: name === "west" ? "eu" : "us" } },
    spec: { credentialsSecret: { name } },
  }));
  const client = fakeClient({
    cluster: "host",
    list: ownList ?? (async () => ({ items: clusters, resourceVersion: "1", size: 1 })),
    raw: async () => ({}),
  });
  return recordedSession({
    signal,
    connect: async () => connection(client, { namespace: "shop" }),
    openReading: async (_host, name = "host") => {
      const member = members[name];
      if (member === undefined) throw new Error(`this test has no ${name}`);
      return member.client;
    },
  });
}

/** Runs of `legation get` on a host with two members. */
export class GetRuns {
  readonly west: FakeMember = new FakeMember("west");
  readonly east: FakeMember = new FakeMember("east");
  session: RecordedSession = sessionWith({ west: this.west, east: this.east });

  async get(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const { session } = this;
    const code = await runProgram(["get", ...args], session, "1.0.0");
    return { code, out: session.out.join("").replaceAll(/ +/g, " "), err: session.err.join("") };
  }
}
