import type { Registry } from "../../clusters/registry.ts";
import type { Networks } from "../../copies/joined-slices.ts";

export interface JoinedNetworksOptions {
  readonly registry: Pick<Registry, "members">;
  /** The host's network. Undefined: its pods are reached by no member. */
  readonly network: string | undefined;
}

/** The networks in which members reach each other's pods, as their Clusters say. */
export class JoinedNetworks {
  readonly #options: JoinedNetworksOptions;
  #now: Networks;

  constructor(options: JoinedNetworksOptions) {
    this.#options = options;
    this.#now = { host: options.network, members: new Map() };
  }

  /** Another object after every change. */
  get now(): Networks {
    return this.#now;
  }

  get areAny(): boolean {
    return this.#now.members.size > 0;
  }

  isJoined(member: string): boolean {
    return this.#now.members.has(member);
  }

  /** Reads the Clusters again; reports whether anything changed. */
  update(): boolean {
    const members = new Map(
      this.#options.registry.members().flatMap(({ name, cluster }): [string, string][] => {
        const { network } = cluster.spec;
        return network === undefined ? [] : [[name, network]];
      }),
    );
    const { members: before } = this.#now;
    if (members.size === before.size && [...members].every(([name, network]) => before.get(name) === network))
      return false;
    this.#now = { host: this.#options.network, members };
    return true;
  }
}
