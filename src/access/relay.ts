import { ACCESS_NAMESPACE, RELAY_KEYS, RELAY_SECRET } from "../api/access.ts";
import { type Secret, secretText } from "../api/kubernetes.ts";
import type { ClusterClient, Dial, PathUpgrades } from "../kube/client.ts";
import type { RequestIdentity } from "../kube/credentials.ts";
import { hubClient, relayDial } from "../tunnel/relay.ts";

interface HubAccess {
  readonly address: string;
  readonly identity: RequestIdentity;
}

/** The way to members with agents: through the leading controller's hub, as the relay's Secret says. */
export class Relay {
  #access: HubAccess | undefined;
  #client: (ClusterClient & PathUpgrades) | undefined;

  update(secret: Secret | undefined): void {
    const access = readAccess(secret);
    if (access?.address !== this.#access?.address) {
      void this.#client?.close();
      this.#client =
        access &&
        hubClient(access.address, {
          userAgent: "legation-access",
          source: `Secret ${ACCESS_NAMESPACE}/${RELAY_SECRET}`,
          identity: () => this.#access?.identity ?? {},
        });
    }
    this.#access = access;
  }

  dial(cluster: string): Dial {
    return (signal) =>
      this.#client === undefined
        ? Promise.reject(
            new Error(`Secret ${ACCESS_NAMESPACE}/${RELAY_SECRET} is missing: does the controller take agents?`),
          )
        : relayDial(this.#client, cluster)(signal);
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }
}

function readAccess(secret: Secret | undefined): HubAccess | undefined {
  const [address, cert, key, ca] = [RELAY_KEYS.address, RELAY_KEYS.cert, RELAY_KEYS.key, RELAY_KEYS.authorities].map(
    (name) => secretText(secret, name),
  );
  if (address === undefined || cert === undefined || key === undefined || ca === undefined) return undefined;
  return { address, identity: { cert, key, ca } };
}
