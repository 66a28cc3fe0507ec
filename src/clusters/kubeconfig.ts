import { stringify } from "yaml";

export interface MemberAddress {
  readonly cluster: string;
  readonly server: string;
  /** PEM bundle. Undefined: the system's authorities. */
  readonly certificateAuthority?: string | undefined;
  readonly skipsTlsVerify?: boolean;
  readonly tlsServerName?: string | undefined;
  readonly proxyUrl?: string | undefined;
}

export interface ImpersonatedUser {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Builds a kubeconfig that names no file and runs no program, so that it works wherever the controller is. */
export function memberKubeconfig(
  access: MemberAddress & { readonly token: string; readonly as?: ImpersonatedUser },
): string {
  const { cluster, server, certificateAuthority, skipsTlsVerify, tlsServerName, proxyUrl, token, as } = access;
  const impersonated = as && { as: as.user, "as-uid": as.uid, "as-groups": as.groups, "as-user-extra": as.extra };
  // Fields without a value are left out.
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          "certificate-authority-data": certificateAuthority && Buffer.from(certificateAuthority).toString("base64"),
          "insecure-skip-tls-verify": skipsTlsVerify || undefined,
          "tls-server-name": tlsServerName,
          "proxy-url": proxyUrl,
        },
      },
    ],
    users: [{ name: "legation", user: { token, ...impersonated } }],
    contexts: [{ name: cluster, context: { cluster, user: "legation" } }],
    "current-context": cluster,
  });
}
