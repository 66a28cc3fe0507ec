import type { ClusterCredentials } from "./credentials.ts";

/** Credentials that can be replaced without interrupting connections and watches. */
export interface RenewableCredentials {
  readonly credentials: ClusterCredentials;
  /** Switches to `next`. Returns false, and changes nothing, when `next` is for another server or proxy. */
  renew(next: ClusterCredentials): boolean;
}

/** Wraps credentials to make them renewable. */
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
