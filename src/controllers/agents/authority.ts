import { HUB_ADDRESSES_ANNOTATION, HUB_SECRET, INSTALLED_LABELS, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { type Secret, secretData, secretText } from "../../api/kubernetes.ts";
import { certificatesOf, unended } from "../../certificates/bundle.ts";
import { type Authority, issueAuthority } from "../../certificates/issue.ts";
import { DAY_MS, issuedAt, renewalReason } from "../../certificates/validity.ts";

/** The content of the hub's Secret. */
export interface HubAuthorities {
  /** Signs certificates of the hub and of agents. */
  readonly current: Authority;
  /** The next one, which agents learn to trust before it signs. */
  readonly next: Authority | undefined;
  /** Earlier ones (PEM): agents may still have certificates of theirs. */
  readonly earlier: string;
  /** `HOST:PORT` under which agents reach the hub. */
  readonly addresses: readonly string[];
}

const LIFETIME_MS = 10 * 365 * DAY_MS;
/** Time in which agents learn of the next authority: one that is away for longer has to join again. */
const ANNOUNCED_MS = 30 * DAY_MS;
const NAME = "legation-hub-ca";

/** Reads the hub's Secret. Undefined if a part is missing. */
export function readAuthorities(secret: Secret | undefined): HubAuthorities | undefined {
  const current = pair(secret, "ca");
  if (secret === undefined || current === undefined) return undefined;
  const addresses = (secret.metadata?.annotations?.[HUB_ADDRESSES_ANNOTATION] ?? "").split(",");
  return {
    current,
    next: pair(secret, "ca-next"),
    earlier: secretText(secret, "ca-earlier.crt") ?? "",
    addresses: addresses
      .map((address) => address.trim())
      .filter((address) => address !== "" && URL.canParse(`https://${address}`)),
  };
}

export async function firstAuthorities(address: string, now: number): Promise<Secret> {
  const current = await issueAuthority(NAME, { now, lifetimeMs: LIFETIME_MS });
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      namespace: SYSTEM_NAMESPACE,
      name: HUB_SECRET,
      labels: { ...INSTALLED_LABELS },
      annotations: { [HUB_ADDRESSES_ANNOTATION]: address },
    },
    type: "Opaque",
    data: dataOf({ current, next: undefined, earlier: "" }),
  };
}

/** Returns all authorities (PEM) of certificates that the hub and its agents may present. */
export function trusted({ current, next, earlier }: HubAuthorities): string {
  return current.cert + (next?.cert ?? "") + earlier;
}

/** Returns the Secret's next data when a step is due: another authority is announced, and signs thirty days later. `now`: epoch ms. */
export async function renewed(
  { current, next, earlier }: HubAuthorities,
  now: number,
): Promise<Record<string, string> | undefined> {
  if (next !== undefined) {
    if (now < (issuedAt(next.cert) ?? 0) + ANNOUNCED_MS) return undefined;
    const others = unended([current.cert, ...certificatesOf(earlier)], now);
    return dataOf({ current: next, next: undefined, earlier: others.join("") });
  }
  if (renewalReason(current.cert, { now }) !== "expiring") return undefined;
  return dataOf({ current, next: await issueAuthority(NAME, { now, lifetimeMs: LIFETIME_MS }), earlier });
}

function pair(secret: Secret | undefined, name: string): Authority | undefined {
  const [cert, key] = [secretText(secret, `${name}.crt`), secretText(secret, `${name}.key`)];
  return cert === undefined || cert === "" || key === undefined ? undefined : { cert, key };
}

function dataOf({ current, next, earlier }: Omit<HubAuthorities, "addresses">): Record<string, string> {
  return secretData({
    "ca.crt": current.cert,
    "ca.key": current.key,
    "ca-next.crt": next?.cert ?? "",
    "ca-next.key": next?.key ?? "",
    "ca-earlier.crt": earlier,
  });
}
