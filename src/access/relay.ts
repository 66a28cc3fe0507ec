import { ACCESS_NAMESPACE, RELAY_KEYS, RELAY_SECRET } from "../api/access.ts";
import { type Secret, secretText } from "../api/kubernetes.ts";
import type { Dial } from "../kube/client.ts";
import { type HubAccess, HubDialer } from "../tunnel/relay.ts";

/** The way to members with agents: through the leading controller's hub, as the relay's Secret says. */
export class Relay {
  readonly #hub = new HubDialer({ userAgent: "legation-access", source: `Secret ${ACCESS_NAMESPACE}/${RELAY_SECRET}` });

  update(secret: Secret | undefined): void {
    this.#hub.update(readAccess(secret));
  }

  dial(cluster: string): Dial {
    return this.#hub.dial(cluster, "does the controller take agents?");
  }

  close(): Promise<void> {
    return this.#hub.close();
  }
}

function readAccess(secret: Secret | undefined): HubAccess | undefined {
  const [address, cert, key, ca] = [RELAY_KEYS.address, RELAY_KEYS.cert, RELAY_KEYS.key, RELAY_KEYS.authorities].map(
    (name) => secretText(secret, name),
  );
  if (address === undefined || cert === undefined || key === undefined || ca === undefined) return undefined;
  return { address, identity: { cert, key, ca } };
}
