import type { Cluster } from "../api/cluster.ts";
import type { Stored } from "../api/kubernetes.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface RenewableConnection {
  /** Switches to a kubeconfig. Returns false when it is for another server, which needs a new connection. Throws when unusable. */
  renew(kubeconfig: string): boolean;
}

/** The kubeconfig of a member, or why there is none. */
export type FoundKubeconfig = string | { readonly problem: string };

export interface ConnectionsOptions<C extends RenewableConnection> {
  /** Throws a message for the operator when the kubeconfig is unusable. */
  readonly connect: (cluster: Stored<Cluster>, kubeconfig: string) => C;
  /** Called for each connection that came, with the one that it replaces. */
  readonly onConnected?: (cluster: Stored<Cluster>, connection: C, previous: C | undefined) => void;
  /** A working connection goes on with other credentials. */
  readonly onRenewed?: (name: string) => void;
  readonly close: (connection: C) => Promise<void>;
  /** Returns what precedes the message of an unusable kubeconfig. */
  readonly source: (cluster: Stored<Cluster>) => string;
  readonly log: Logger;
}

interface Held<C> {
  readonly connection: C;
  readonly hasAgent: boolean;
  kubeconfig: string;
}

/** The connections to members, one per Cluster, each by the kubeconfig in its Secret. */
export class MemberConnections<C extends RenewableConnection> {
  readonly #options: ConnectionsOptions<C>;
  readonly #held = new Map<string, Held<C>>();
  /** Asked for several times for each pod, and changes seldom. */
  #all: readonly C[] | undefined;
  readonly #problems = new Map<string, string>();

  constructor(options: ConnectionsOptions<C>) {
    this.#options = options;
  }

  get(name: string): C | undefined {
    return this.#held.get(name)?.connection;
  }

  all(): readonly C[] {
    this.#all ??= [...this.#held.values()].map(({ connection }) => connection);
    return this.#all;
  }

  /** Returns the kubeconfig by which the member is reached now. */
  kubeconfig(name: string): string | undefined {
    return this.#held.get(name)?.kubeconfig;
  }

  /** Returns why the Cluster has no connection, or keeps its old credentials. */
  problem(name: string): string | undefined {
    return this.#problems.get(name);
  }

  get hasProblems(): boolean {
    return this.#problems.size > 0;
  }

  /**
   * Connects to the member, or goes on with other credentials. Keeps a working connection while there is no kubeconfig: a Secret
   * that is being rewritten must not look like a lost member.
   */
  update(cluster: Stored<Cluster>, kubeconfig: FoundKubeconfig): void {
    const { name } = cluster.metadata;
    if (typeof kubeconfig !== "string") {
      this.noteProblem(name, kubeconfig.problem);
      return;
    }
    try {
      this.#lead(cluster, kubeconfig);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.noteProblem(name, `${this.#options.source(cluster)}${reason}`);
    }
  }

  /** Ends the connection, and all that goes through it. */
  end(name: string): void {
    const held = this.#held.get(name);
    if (held === undefined) return;
    this.#held.delete(name);
    this.#all = undefined;
    const { close, log } = this.#options;
    close(held.connection).catch((error: unknown) => log.warn({ member: name, err: error }, "disconnect failed"));
  }

  async stop(): Promise<void> {
    const all = this.all();
    this.#held.clear();
    this.#all = undefined;
    await Promise.all(all.map((connection) => this.#options.close(connection)));
  }

  noteProblem(name: string, problem: string): void {
    if (problem !== this.#problems.get(name)) this.#options.log.warn({ member: name }, problem);
    this.#problems.set(name, problem);
  }

  forgetProblem(name: string): void {
    this.#problems.delete(name);
  }

  #lead(cluster: Stored<Cluster>, kubeconfig: string): void {
    const { connect, onConnected, onRenewed } = this.#options;
    const { name } = cluster.metadata;
    const held = this.#held.get(name);
    const hasAgent = cluster.spec.agent !== undefined;
    // A member that is reached another way needs a new connection, even to the same address.
    const isSameWay = held?.hasAgent === hasAgent;
    if (held !== undefined && isSameWay) {
      const isSame = held.kubeconfig === kubeconfig;
      if (isSame || held.connection.renew(kubeconfig)) {
        held.kubeconfig = kubeconfig;
        this.forgetProblem(name);
        if (!isSame) onRenewed?.(name);
        return;
      }
    }
    const connection = connect(cluster, kubeconfig);
    this.forgetProblem(name);
    this.end(name);
    this.#held.set(name, { connection, hasAgent, kubeconfig });
    this.#all = undefined;
    onConnected?.(cluster, connection, held?.connection);
  }
}
