import { stringify } from "yaml";

export interface MemberAccess {
  readonly cluster: string;
  readonly server: string;
  /** PEM; absent when the system's roots vouch for the server. */
  readonly certificateAuthority?: string | undefined;
  readonly skipsTlsVerify: boolean;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
  readonly token: string;
}

/** A kubeconfig that stands alone: it names no file and runs no program, so that it works wherever the controller is. */
export function memberKubeconfig(access: MemberAccess): string {
  const { cluster, server, certificateAuthority, skipsTlsVerify, tlsServerName, proxyUrl, token } = access;
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          ...(certificateAuthority === undefined
            ? {}
            : { "certificate-authority-data": Buffer.from(certificateAuthority).toString("base64") }),
          ...(skipsTlsVerify ? { "insecure-skip-tls-verify": true } : {}),
          ...(tlsServerName === undefined ? {} : { "tls-server-name": tlsServerName }),
          ...(proxyUrl === undefined ? {} : { "proxy-url": proxyUrl }),
        },
      },
    ],
    users: [{ name: "legation", user: { token } }],
    contexts: [{ name: cluster, context: { cluster, user: "legation" } }],
    "current-context": cluster,
  });
}

/** Reports whether two URLs name the same API server. */
export function isSameServer(current: string, wanted: string): boolean {
  const [one, other] = [current, wanted].map((url) => URL.parse(url)?.href.replace(/\/+$/, ""));
  return one === other;
}
