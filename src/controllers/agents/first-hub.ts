import type { Socket } from "node:net";
import { HUB_SECRET, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type Certificate, issueClientWithKey } from "../../certificates/issue.ts";
import { DAY_MS, renewalReason } from "../../certificates/validity.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient, PathUpgrades } from "../../kube/client.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Mutex } from "../../runtime/mutex.ts";
import { CONTROLLER_NAME, hubClient, relayDial } from "../../tunnel/relay.ts";
import { type HubAuthorities, readAuthorities, trusted } from "./authority.ts";

const LIFETIME_MS = 30 * DAY_MS;

/** The way of other shards to members with agents: through the hub of the first shard's holder, where agents find it. */
export class FirstHub {
  readonly #registry: Pick<Registry, "systemSecret">;
  readonly #clock: Pick<Clock, "wall">;
  readonly #mutex = new Mutex();
  #identity: (Certificate & { readonly ca: string }) | undefined;
  #client: (ClusterClient & PathUpgrades) | undefined;
  #address: string | undefined;

  constructor({ registry, clock }: { readonly registry: Pick<Registry, "systemSecret">; readonly clock: Clock }) {
    this.#registry = registry;
    this.#clock = clock;
  }

  /** Opens a connection to a member. Rejects with the reason why there is none. */
  async dial(name: string, signal: AbortSignal): Promise<Socket> {
    const authorities = readAuthorities(this.#registry.systemSecret(HUB_SECRET));
    const [address] = authorities?.addresses ?? [];
    if (authorities === undefined || address === undefined) {
      throw new Error(`Secret ${SYSTEM_NAMESPACE}/${HUB_SECRET} is missing: run \`legation join ${name} --agent\``);
    }
    return relayDial(await this.#connect(authorities, address, signal), name)(signal);
  }

  async stop(): Promise<void> {
    await this.#client?.close();
  }

  async #connect(authorities: HubAuthorities, address: string, signal: AbortSignal): Promise<PathUpgrades> {
    const unlock = await this.#mutex.lock(signal);
    try {
      const now = this.#clock.wall();
      const due = renewalReason(this.#identity?.cert ?? "", { now, authority: authorities.current.cert });
      const { cert = "", key = "" } = due === undefined ? (this.#identity ?? {}) : await issued(authorities, now);
      this.#identity = { cert, key, ca: trusted(authorities) };
      if (this.#client !== undefined && this.#address === address) return this.#client;
      void this.#client?.close();
      this.#address = address;
      this.#client = hubClient(address, {
        userAgent: "legation",
        source: `Secret ${SYSTEM_NAMESPACE}/${HUB_SECRET}`,
        identity: () => this.#identity ?? {},
      });
      return this.#client;
    } finally {
      unlock();
    }
  }
}

function issued({ current }: HubAuthorities, now: number): Promise<Certificate> {
  const subject = { name: CONTROLLER_NAME, uid: CONTROLLER_NAME };
  return issueClientWithKey(current, subject, { now, lifetimeMs: LIFETIME_MS });
}
