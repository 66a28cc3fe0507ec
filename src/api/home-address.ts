/** The address of an API server as in-cluster configuration holds it. */
export interface HomeAddress {
  /** Name or IP address; IPv6 without brackets. */
  readonly host: string;
  readonly port: string;
  /** IP address to which pods resolve the name. Absent: the member's DNS knows it. */
  readonly ip?: string;
}

/**
 * Parses `https://HOST[:PORT]`. Undefined for anything else: in-cluster configuration has no place for a path, user
 * or other scheme.
 */
export function homeAddress(server: string): HomeAddress | undefined {
  const url = URL.parse(server);
  if (url?.protocol !== "https:" || url.pathname !== "/" || url.search !== "" || url.hash !== "") return undefined;
  if (url.username !== "" || url.password !== "") return undefined;
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port: url.port === "" ? "443" : url.port };
}

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
