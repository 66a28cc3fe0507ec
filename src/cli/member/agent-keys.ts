/** Keys of an agent's Secret in its member. */
export const AGENT_KEYS = {
  /** `HOST:PORT` of the hub. */
  hub: "hub",
  cluster: "cluster",
  /** Name of the host's service account in the member. */
  account: "account",
  /** Name of the account by which `legation access` acts for users; empty without one. */
  accessAccount: "access-account",
  /** PEM bundle of the hub's authorities. */
  authorities: "ca.crt",
  /** Token for the first certificate. */
  token: "token",
  cert: "tls.crt",
  key: "tls.key",
  /** Signing request that was not answered yet, and its key. */
  request: "next.csr",
  requestKey: "next.key",
} as const;
