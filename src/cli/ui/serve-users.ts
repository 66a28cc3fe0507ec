import { once } from "node:events";
import { Server } from "node:https";
import { realClock } from "../../runtime/clock.ts";
import { type ListenAddress, listenAt } from "../shared/listening.ts";
import type { Connection, Session } from "../shared/session.ts";
import { type CertificateFiles, fingerprintOf, nextCertificate, servingCertificate } from "./certificate.ts";
import { pageFiles } from "./page-files.ts";
import { createPageServer } from "./server.ts";
import { TokenSignIn } from "./token-sign-in.ts";
import { openTokenUser } from "./token-user.ts";

export interface ServeUsersOptions {
  /** Address and authority of the host's API server. Its identity is not used. */
  readonly connection: Connection;
  readonly listen: ListenAddress;
  readonly hosts: readonly string[];
  /** Undefined: a certificate of its own. */
  readonly certificateFiles: CertificateFiles | undefined;
  readonly namespace: string | undefined;
  /** Networks (CIDR) of proxies before the page. */
  readonly trustedProxies: readonly string[];
  readonly session: Session;
}

// Certificates are renewed days before they expire.
const READ_AGAIN_MS = 60_000;

/** Serves the page over HTTPS to all users who sign in with a bearer token, until the session ends. */
export async function serveUsers(options: ServeUsersOptions): Promise<void> {
  const { connection, listen, hosts, certificateFiles, namespace: only, trustedProxies, session } = options;
  const { signal, terminal } = session;
  const gate = new TokenSignIn({
    hosts: hosts.map((host) => host.toLowerCase()),
    open: (token, namespace) => openTokenUser(connection, token, { only: only ?? namespace }),
    clock: realClock,
  });
  let certificate = await servingCertificate(certificateFiles, hosts, realClock.wall());
  const server = createPageServer({ files: await pageFiles(), gate, certificate, trustedProxies });
  const tellFingerprint = (): void => {
    if (certificateFiles !== undefined) return;
    terminal.progress(`the certificate is self-signed; its SHA-256 fingerprint: ${fingerprintOf(certificate)}`);
  };
  const renew = async (): Promise<void> => {
    const next = await nextCertificate(certificate, certificateFiles, { hosts, now: realClock.wall() });
    if (next === undefined || !(server.server instanceof Server)) return;
    server.server.setSecureContext({ ...next, minVersion: "TLSv1.2" });
    certificate = next;
    tellFingerprint();
  };
  const timer = setInterval(() => {
    // The present certificate is served until the files are a pair.
    renew().catch((error: unknown) => terminal.progress(error instanceof Error ? error.message : String(error)));
  }, READ_AGAIN_MS);
  try {
    const address = await listenAt("--listen", () => server.listen(listen));
    terminal.print(address);
    tellFingerprint();
    if (!signal.aborted) await once(signal, "abort");
  } finally {
    clearInterval(timer);
    await gate.close();
    await server.close();
  }
}
