/** The address of an API server, as in the variables of a pod's in-cluster configuration. */
export interface HomeAddress {
  /** Name or IP address, an IPv6 one without brackets. */
  readonly host: string;
  readonly port: string;
}

/**
 * The address in `https://HOST[:PORT]`; undefined when it is anything else. In-cluster configuration has no room for a
 * path, a user or another scheme.
 */
export function homeAddress(server: string): HomeAddress | undefined {
  const url = URL.parse(server);
  if (url?.protocol !== "https:" || url.pathname !== "/" || url.search !== "" || url.hash !== "") return undefined;
  if (url.username !== "" || url.password !== "") return undefined;
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port: url.port === "" ? "443" : url.port };
}

/** True when the host is this machine itself, or a name or address that only its own cluster knows. */
export function isLocalAddress({ host }: HomeAddress): boolean {
  return (
    host === "localhost" ||
    host === "::1" ||
    host === "0.0.0.0" ||
    host.startsWith("127.") ||
    host === "kubernetes" ||
    host === "kubernetes.default" ||
    host.endsWith(".svc") ||
    host.endsWith(".svc.cluster.local")
  );
}
