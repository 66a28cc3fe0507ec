import type { ClusterCredentials } from "./credentials.ts";

/** Credentials that others can take the place of while connections and watches go on. */
export interface RenewableCredentials {
  readonly credentials: ClusterCredentials;
  /** Uses `next` from now on; false, and nothing changes, when it is for another server or another way to it. */
  renew(next: ClusterCredentials): boolean;
}

/** Makes credentials renewable. */
export function renewable(first: ClusterCredentials): RenewableCredentials {
  let current = first;
  return {
    credentials: { ...first, identity: () => current.identity(), refresh: () => current.refresh() },
    renew: (next) => {
      const same =
        next.server === first.server &&
        next.insecureSkipTlsVerify === first.insecureSkipTlsVerify &&
        next.tlsServerName === first.tlsServerName &&
        next.proxyUrl === first.proxyUrl;
      if (same) current = next;
      return same;
    },
  };
}
