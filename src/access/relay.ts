import { ACCESS_NAMESPACE, RELAY_KEYS, RELAY_SECRET, RELAY_SERVER_NAME } from "../api/access.ts";
import { type Secret, secretText } from "../api/kubernetes.ts";
import type { ClusterClient, Dial, PathUpgrades } from "../kube/client.ts";
import type { RequestIdentity } from "../kube/credentials.ts";
import { createClusterClient } from "../kube/http-client.ts";
import { relayDial } from "../tunnel/relay.ts";

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
      this.#client = access && this.#open(access.address);
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

  #open(address: string): ClusterClient & PathUpgrades {
    return createClusterClient({
      cluster: "hub",
      userAgent: "legation-access",
      credentials: {
        server: `https://${address}`,
        source: `Secret ${ACCESS_NAMESPACE}/${RELAY_SECRET}`,
        insecureSkipTlsVerify: false,
        tlsServerName: RELAY_SERVER_NAME,
        // A renewed certificate is for the same address.
        identity: () => this.#access?.identity ?? {},
        refresh: () => {},
      },
    });
  }
}

function readAccess(secret: Secret | undefined): HubAccess | undefined {
  const [address, cert, key, ca] = [RELAY_KEYS.address, RELAY_KEYS.cert, RELAY_KEYS.key, RELAY_KEYS.authorities].map(
    (name) => secretText(secret, name),
  );
  if (address === undefined || cert === undefined || key === undefined || ca === undefined) return undefined;
  return { address, identity: { cert, key, ca } };
}
